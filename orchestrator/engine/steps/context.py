"""The context of a running step: progress and saved data go to the database, heartbeats to the supervisor."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import uuid5

from asgiref.sync import async_to_sync

from orchestrator.definition.codec import encode_as, limited_digest
from orchestrator.definition.workflow.context import (
    AsyncStepContext,
    AttemptContext,
    StepContext,
)
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.sql.batch import send
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.storage.application_code.errors import EngineErrors
from orchestrator.engine.work.worker_slice import Reporting
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus
from orchestrator.text import spoken_text

log = logging.getLogger(__name__)

SHOWN_SECONDS = 0.25
"""The shortest time between two stored reports of progress; each report is a heartbeat all the same."""


class RunningStep(StepContext):
    """The context of one attempt.

    Args:
        instance: its process.
        run: the claimed visit.
        timeout: seconds that the attempt may take.
        reporting: reports a heartbeat to the supervisor.
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
        self.deadline = datetime.now(UTC) + timedelta(seconds=timeout)
        self.saved = run.saved

    @cached_property
    def idempotency_key(self) -> str:  # type: ignore[override]  # made only when it is asked for
        run = self._run
        kind = "undo" if run.kind == StepKind.UNDO else ""
        name = f"{run.node}:{run.visit}:{run.item}:{run.round}{kind}"
        return str(uuid5(self.process_id, name))

    @EngineErrors()
    def progress(
        self, done: float, total: float | None = None, message: str = ""
    ) -> None:
        with self._reporting():
            if not _is_finite(done):
                return
            total = total if _is_finite(total) else None
            now, complete = time.monotonic(), done == total
            news = complete and not self._complete
            if now - self._shown < SHOWN_SECONDS and not news:
                return
            self._shown, self._complete = now, complete
            name, data = self._instance.name, self._instance.data
            said = secret_values.mask_line(spoken_text(message), name, data)
            shown = {"done": done, "total": total, "message": said[:200]}
            written = encode_as(dict, shown, exact=False)
            known = self._run.progress = self._run.polled | written
            self._store(progress=known)
            announce(self._instance, {self.step: StepStatus.RUNNING}, "")

    @EngineErrors()
    def save(self, data: Any) -> None:
        with self._reporting():
            body = encode_as(Any, data)
            limited_digest(body)
            self._store(saved=body)
            self.saved = body

    def still_mine(self) -> bool:
        with self._reporting():
            held = StepRun.objects.filter(**self._run.fence)
            return held.exists()

    def _store(self, **values: Any) -> None:
        send([step_runs.update(values, self._run.fence)])


InEngineThread = Callable[[Callable[..., Any]], Callable[..., Awaitable[Any]]]
"""Wraps a function in one that is awaited while the engine's thread calls it."""


def _is_finite(number: float | None) -> bool:
    """Whether a report of progress has a number here that can be stored and drawn."""
    try:
        return number is not None and math.isfinite(number)
    except (OverflowError, TypeError, ValueError):
        return False


class AwaitedStep(AsyncStepContext):
    """The context of an attempt whose function is awaited: the engine's thread asks the database.

    Args:
        step: the context of the same attempt in the engine's thread.
        elsewhere: calls a function in the engine's thread.
    """

    def __init__(self, step: RunningStep, elsewhere: InEngineThread) -> None:
        self._step, self._elsewhere = step, elsewhere
        self._news: tuple[float, float | None, str] | None = None
        self._telling: asyncio.Task[None] | None = None
        for name in AttemptContext.__annotations__:
            setattr(self, name, getattr(step, name))

    def progress(
        self, done: float, total: float | None = None, message: str = ""
    ) -> None:
        self._news = done, total, message
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._tell())
            self._telling.add_done_callback(_told)

    async def _tell(self) -> None:
        """Store the latest progress; skip reports that come faster than they can be stored."""
        while self._news is not None:
            news, self._news = self._news, None
            await self._elsewhere(self._step.progress)(*news)

    async def save(self, data: Any) -> None:
        await self._elsewhere(self._step.save)(data)
        self.saved = self._step.saved

    async def still_mine(self) -> bool:
        return bool(await self._elsewhere(self._step.still_mine)())

    async def end(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Await the function's result, and then the storing of its last progress, unless the call is cancelled."""
        try:
            return await coroutine
        except asyncio.CancelledError:
            if self._telling is not None:
                self._telling.cancel()
            raise
        finally:
            if self._telling is not None:
                await asyncio.wait([self._telling])


def _told(telling: asyncio.Task[None]) -> None:
    """Log an error in storing progress: the step itself goes on, and the fence of its result decides."""
    if not telling.cancelled() and (error := telling.exception()) is not None:
        log.info("what a step said is not shown: %s", error)


def as_awaitable(function: Callable[..., Any], step: AwaitedStep) -> Callable[..., Any]:
    """Wrap a step's function, asynchronous or plain, in one that is awaited together with its context."""

    async def call(**arguments: Any) -> Any:
        result = function(**arguments)
        return await step.end(result) if inspect.iscoroutine(result) else result

    return call


def as_plain(function: Callable[..., Any], step: AwaitedStep) -> Callable[..., Any]:
    """Wrap a step's function, asynchronous or plain, in a plain one."""

    def call(**arguments: Any) -> Any:
        result = function(**arguments)
        waits = inspect.iscoroutine(result)
        return async_to_sync(step.end)(result) if waits else result

    return call
