"""Watching what is done with a visit: what hangs is ended by the supervisor, and a death in between is counted."""

from contextlib import AbstractContextManager

from orchestrator.conf import conf
from orchestrator.engine.claims import leases
from orchestrator.engine.claims.worker_slice import Reporting, WorkerSlice
from orchestrator.engine.storage.tables import step_runs
from orchestrator.models import StepRun


def watched(
    run: StepRun, worker_slice: WorkerSlice, seconds: float = 0
) -> AbstractContextManager[Reporting]:
    """Watches what is done with a visit: so many seconds of its own, and as long as a transaction may take."""
    name = leases.name_of(step_runs, run.pk)
    return worker_slice.watch(seconds + conf().EVENT_TIMEOUT, name)
