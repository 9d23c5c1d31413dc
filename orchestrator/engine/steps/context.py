"""What a running step can say and ask, against the database and this worker's supervisor."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import uuid5

from asgiref.sync import async_to_sync

from orchestrator.definition.codec import encode_as, seal
from orchestrator.definition.workflow.context import (
    AsyncStepContext,
    AttemptContext,
    StepContext,
)
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.change.application_code import engines
from orchestrator.engine.claims.worker_slice import Reporting
from orchestrator.engine.storage.batch import send
from orchestrator.engine.storage.tables import step_runs
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus

log = logging.getLogger(__name__)

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
        self.deadline = datetime.now(UTC) + timedelta(seconds=timeout)
        self.saved = run.saved

    @cached_property
    def idempotency_key(self) -> str:  # type: ignore[override]  # made only when it is asked for
        run = self._run
        kind = "undo" if run.kind == StepKind.UNDO else ""
        name = f"{run.node}:{run.visit}:{run.item}:{run.round}{kind}"
        return str(uuid5(self.process_id, name))

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
            name, data = self._instance.name, self._instance.data
            said = secret_values.line_without(str(message), name, data)
            shown = {"done": done, "total": total, "message": said[:200]}
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
            held = StepRun.objects.filter(**self._run.fence)
            return held.exists()

    def _store(self, **values: Any) -> None:
        send([step_runs.update(values, self._run.fence)])


Elsewhere = Callable[[Callable[..., Any]], Callable[..., Awaitable[Any]]]
"""Makes a function one that is awaited while it is called in the thread that has the engine's connection."""


class AwaitedStep(AsyncStepContext):
    """The context of an attempt whose function is awaited: what asks the database does so in another thread.

    Args:
        step: the same attempt, in that thread.
        elsewhere: calls a function there.
    """

    def __init__(self, step: RunningStep, elsewhere: Elsewhere) -> None:
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
        """Shows the latest of what the step says faster than it can be stored."""
        while self._news is not None:
            news, self._news = self._news, None
            await self._elsewhere(self._step.progress)(*news)

    async def save(self, data: Any) -> None:
        await self._elsewhere(self._step.save)(data)
        self.saved = self._step.saved

    async def still_mine(self) -> bool:
        return bool(await self._elsewhere(self._step.still_mine)())

    async def end(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """What the function gives; its call is over when all that it has said is stored, unless it is cancelled."""
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
    """Notes what kept a step from being shown: the fence of its result says what matters."""
    if not telling.cancelled() and (error := telling.exception()) is not None:
        log.info("what a step said is not shown: %s", error)


def awaiting(function: Callable[..., Any], step: AwaitedStep) -> Callable[..., Any]:
    """An asynchronous function, which may be stood in for by a plain one, with all that its context has to say."""

    async def call(**arguments: Any) -> Any:
        result = function(**arguments)
        return await step.end(result) if inspect.iscoroutine(result) else result

    return call


def waited_for(function: Callable[..., Any], step: AwaitedStep) -> Callable[..., Any]:
    """The same as a plain function."""

    def call(**arguments: Any) -> Any:
        result = function(**arguments)
        waits = inspect.iscoroutine(result)
        return async_to_sync(step.end)(result) if waits else result

    return call
