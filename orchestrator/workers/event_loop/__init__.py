"""The thread that awaits a worker's calls, with their time limits; blocking calls have threads of their own.

None of these threads uses the engine's connection. They pass the end of a call to the worker, which stores it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextvars import Context, ContextVar
from decimal import getcontext, setcontext
from typing import Any, NamedTuple

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import close_old_connections, connections

from orchestrator.engine.storage.application_code.descriptors import (
    are_closed,
    end_worker,
)
from orchestrator.engine.work.calls import Call
from orchestrator.exceptions import ExitRefused
from orchestrator.workers.event_loop.call_threads import CallThreads
from orchestrator.workers.shared_memory.calls import SharedCalls

log = logging.getLogger(__name__)

CANCEL_SECONDS = 1.0
"""How long a coroutine that was cancelled may take to end."""

MOST_FAILURES = 10
"""How often the event loop may end without having run anything: then it is broken."""


class CallEnd(NamedTuple):
    """The end of a call.

    Args:
        call: the call.
        result: what its function returned.
        error: what its function raised.
        late: whether its time was over before.
        goes_on: whether it ignores that, and still runs.
    """

    call: Call
    result: Any = None
    error: Exception | None = None
    late: bool = False
    goes_on: bool = False


class Flight:
    """One call while it is in flight."""

    def __init__(self, call: Call, place: int) -> None:
        self.call, self.place = call, place
        self.task: asyncio.Task[Any] | None = None
        self.tasks: set[asyncio.Task[Any]] = set()
        """The tasks that it has begun in the event loop; they end with the call."""
        self.late = self.refused = False
        """Whether its time was over; whether it was refused to cancel other calls."""
        self.over = False
        """Whether its end was passed on."""


_flight: ContextVar[Flight] = ContextVar("flight")


def running_flight() -> Flight | None:
    """Return the call whose code runs here; None outside of all calls."""
    return _flight.get(None)


def step_name() -> str:
    """Return the name of the step or command whose code runs here."""
    flight = running_flight()
    kind = "a call" if flight is None else flight.call.kind
    return str(getattr(kind, "node", kind))


class EventLoop:
    """Awaits calls until the process ends.

    Args:
        tell: receives the end of a call, in any thread.
        shared: where it shows the call that runs.
    """

    def __init__(self, tell: Callable[[CallEnd], None], shared: SharedCalls) -> None:
        self._tell, self._shared = tell, shared
        self._loop = asyncio.new_event_loop()
        # Its declared protocol has parameters that not all versions pass.
        made: Any = self._make_task
        self._loop.set_task_factory(made)
        self._selector = getattr(self._loop, "_selector", None)
        self._failures = 0
        """How often the loop was started since it has run anything."""
        end = self._end_if_broken
        self._threads = CallThreads(None, "of calls", step_name, end)
        self._orm_thread = CallThreads(1, "ORM of calls", step_name, end)
        self._orm = ThreadSensitiveContext()
        SyncToAsync.context_to_thread_executor[self._orm] = self._orm_thread
        loop: Any = self._loop
        loop.shutdown_default_executor = _keep_threads
        threading.Thread(target=self._run, name="calls", daemon=True).start()

    def begin(self, flights: Sequence[Flight]) -> None:
        """Begin calls, all in one callback: each callback wakes the event loop."""
        self._loop.call_soon_threadsafe(self._begin, flights)

    def _begin(self, flights: Sequence[Flight]) -> None:
        for flight in flights:
            flight.call.begin()
            if flight.call.threads is None:
                self._loop.call_soon(self._start_task, flight)
                continue
            thread = threading.Thread(
                None, self._call_in_thread, flight.call.name, [flight], daemon=True
            )
            try:
                thread.start()
            except RuntimeError as error:  # the machine has no more threads for now
                self._end(flight, error=error)
            else:
                self._check_time(flight)

    def cancel(self, flight: Flight) -> None:
        """Cancel a call whose result has no use any more, if it can be cancelled."""
        self._loop.call_soon_threadsafe(self._cancel, flight)

    # In its thread

    def _run(self) -> None:
        """Run the loop, and again when a callback of one call has ended it: other calls are in it too."""
        asyncio.set_event_loop(self._loop)
        while self._failures < MOST_FAILURES and not self._loop.is_closed():
            if not self._failures:
                self._loop.call_soon(self._note_running)
            self._failures += 1
            try:
                self._loop.run_forever()
            except BaseException:
                log.exception("a callback of a step ended the event loop")
            else:
                log.error("a step has stopped the event loop")
        self._shared.blame_last()
        log.error("the event loop is broken: the worker ends")
        end_worker()

    def _note_running(self) -> None:
        self._failures = 0

    def _end_if_broken(self) -> None:
        """End this process if the call that has run here has closed its files or its event loop."""
        shut = self._selector is not None and self._selector.get_map() is None
        if shut or are_closed():
            log.error("%s has closed the files of its worker, which ends", step_name())
            end_worker()

    def _after_turn(self) -> None:
        """Undo what the call that has run here may have left in the loop, before another call runs."""
        self._loop.set_default_executor(self._threads)
        self._end_if_broken()

    def _start_task(self, flight: Flight) -> None:
        # The context is this callback's own, but for the one of decimals.
        _flight.set(flight)
        setcontext(getcontext().copy())
        SyncToAsync.thread_sensitive_context.set(self._orm)
        self._loop.set_default_executor(self._threads)
        flight.task = self._loop.create_task(self._await_call(flight))
        self._check_time(flight)

    async def _await_call(self, flight: Flight) -> None:
        try:
            result = await flight.call.wait()
        except Exception as error:  # noqa: BLE001  # a step may raise anything
            self._end(flight, error=error)
        else:
            self._end(flight, result=result)
        finally:
            for task in flight.tasks - {flight.task}:
                task.cancel()

    def _check_time(self, flight: Flight) -> None:
        """End a call whose time is over, else look again when it may be."""
        if flight.over:
            return
        left = flight.call.due - time.monotonic()
        if left <= 0:
            self._time_out(flight)
            return
        heartbeat = flight.call.heartbeat or left
        self._loop.call_later(min(left, heartbeat), self._check_time, flight)

    def _time_out(self, flight: Flight) -> None:
        flight.late = True
        if flight.task is None:
            self._end(flight, goes_on=True)
        else:
            self._cancel(flight)

    def _cancel(self, flight: Flight) -> None:
        if flight.task is not None:
            # Not in the name of the call: it may await a task of another one.
            Context().run(flight.task.cancel)
            self._loop.call_later(CANCEL_SECONDS, self._end, flight, None, None, True)

    def _end(
        self,
        flight: Flight,
        result: Any = None,
        error: Exception | None = None,
        goes_on: bool = False,
    ) -> None:
        if flight.over:
            return
        flight.over = True
        self._tell(CallEnd(flight.call, result, error, flight.late, goes_on))

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any],
        **given: Any,
    ) -> asyncio.Task[Any]:
        """Return a task that shows its call whenever it runs."""
        flight = _flight.get(None)
        if flight is None:
            return asyncio.Task(coroutine, loop=loop, **given)
        shown = _ShownCoroutine(coroutine, flight.place, self._shared, self._after_turn)
        task = _CallTask(flight, shown, loop=loop, **given)
        flight.tasks.add(task)
        task.add_done_callback(flight.tasks.discard)
        return task

    # In a thread of the call's own

    def _call_in_thread(self, flight: Flight) -> None:
        came: dict[str, Any] = {}
        _flight.set(flight)
        try:
            close_old_connections()
            came["result"] = flight.call.call()
        except Exception as error:  # noqa: BLE001  # a step may raise anything
            came["error"] = error
        finally:
            connections.close_all()
        self._loop.call_soon_threadsafe(lambda: self._end(flight, **came))


async def _keep_threads(*given: Any) -> None:
    """Do nothing, in place of a loop's `shutdown_default_executor`: other calls use its threads."""


class _CallTask(asyncio.Task[Any]):
    """A task of a call, which no other call cancels, such as one that cancels all tasks of the loop."""

    def __init__(self, flight: Flight, coroutine: Any, **given: Any) -> None:
        self._flight = flight  # first: an eager task runs at once
        super().__init__(coroutine, **given)

    def cancel(self, msg: Any = None) -> bool:
        by = running_flight()
        if by is None or by is self._flight:
            return super().cancel(msg)
        if not by.refused:
            by.refused = True
            log.warning("%s may not cancel other calls", step_name())
        return False


class _ShownCoroutine(Coroutine[Any, Any, Any]):
    """A coroutine of a call, which shows the call while it runs and so blocks all others."""

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        place: int,
        shared: SharedCalls,
        afterwards: Callable[[], None],
    ) -> None:
        self._coroutine, self._place, self._shared = coroutine, place, shared
        self._afterwards = afterwards
        self.__name__ = getattr(coroutine, "__name__", "coroutine")
        self.__qualname__ = getattr(coroutine, "__qualname__", "coroutine")

    def __getattr__(self, name: str) -> Any:
        # Libraries look at how far a task's coroutine is (`inspect.getcoroutinestate`) before they cancel it.
        return getattr(self._coroutine, name)

    def send(self, value: Any) -> Any:
        return self._step(self._coroutine.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._coroutine.throw, *error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()

    def _step(self, step: Callable[..., Any], *given: Any) -> Any:
        self._shared.begin_turn(self._place)
        try:
            return step(*given)
        except (SystemExit, KeyboardInterrupt) as ending:
            # It would end the loop and all calls in it.
            raise ExitRefused(
                "%(function)s raised %(error)s, which ends programs; a step fails by raising an Exception",
                self.__name__,
                type(ending).__name__,
            ) from ending
        finally:
            self._shared.end_turn()
            self._afterwards()
