"""Watching a piece of work: what hangs is ended by the supervisor, and a death in between is counted."""

from contextlib import AbstractContextManager

from orchestrator.conf import conf
from orchestrator.engine.claims.worker_slice import Reporting, WorkerSlice
from orchestrator.models import Work


def watched(
    work: Work, worker_slice: WorkerSlice, seconds: float = 0
) -> AbstractContextManager[Reporting]:
    """Watches what is done with it: so many seconds of its own, and as long as a transaction may take."""
    name = f"{work._meta.model_name}:{work.pk}"  # as leases call it
    return worker_slice.watch(seconds + conf().EVENT_TIMEOUT, name)
