"""What a running step can say and ask, against the database and this worker's supervisor."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid5

from orchestrator.definition.codec import encode_as, seal
from orchestrator.definition.workflow.context import StepContext
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.change.application_code import engines
from orchestrator.engine.claims.worker_slice import Reporting
from orchestrator.engine.storage.batch import send
from orchestrator.engine.storage.tables import step_runs
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus

SHOWN_SECONDS = 0.25
"""Progress is stored and shown no more often than this; it tells that the step is alive each time."""


class RunningStep(StepContext):
    """The context of one attempt.

    Args:
        instance: its process.
        run: the claimed visit.
        timeout: seconds the attempt may take.
        reporting: tells the supervisor that the step reports.
    """

    def __init__(
        self,
        instance: ProcessInstance,
        run: StepRun,
        timeout: float,
        reporting: Reporting,
    ) -> None:
        self._instance, self._run, self._reporting = instance, run, reporting
        self._shown, self._complete = 0.0, False
        self.process_id = instance.pk
        self.step = run.node
        self.attempt = run.attempt
        self.visit = run.visit
        kind = "undo" if run.kind == StepKind.UNDO else ""
        name = f"{run.node}:{run.visit}:{run.item}:{run.round}{kind}"
        self.idempotency_key = str(uuid5(instance.pk, name))
        self.deadline = datetime.now(UTC) + timedelta(seconds=timeout)
        self.saved = run.saved

    @engines()
    def progress(
        self, done: float, total: float | None = None, message: str = ""
    ) -> None:
        with self._reporting():
            now, complete = time.monotonic(), done == total
            news = complete and not self._complete
            if now - self._shown < SHOWN_SECONDS and not news:
                return
            self._shown, self._complete = now, complete
            shown = {"done": done, "total": total, "message": str(message)[:200]}
            self._store(progress=encode_as(dict, shown))
            announce(self._instance, {self.step: StepStatus.RUNNING}, "")

    @engines()
    def save(self, data: Any) -> None:
        with self._reporting():
            body = encode_as(Any, data)
            seal(body)
            self._store(saved=body)
            self.saved = body

    def still_mine(self) -> bool:
        with self._reporting():
            held = StepRun.objects.filter(**self._fence)
            return held.exists()

    def _store(self, **values: Any) -> None:
        send([step_runs.update(values, self._fence)])

    @property
    def _fence(self) -> dict[str, Any]:
        run = self._run
        return {"id": run.pk, "owner": run.owner, "attempt": run.attempt}
