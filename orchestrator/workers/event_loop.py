"""The thread that awaits a worker's calls, with their time limits; blocking calls have threads of their own.

None of these threads uses the engine's connection. They pass the end of a call to the worker, which stores it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

from django.db import close_old_connections, connections

from orchestrator.engine.work.calls import Call
from orchestrator.exceptions import ExitRefused
from orchestrator.workers.shared_memory.calls import SharedCalls

log = logging.getLogger(__name__)

CANCEL_SECONDS = 1.0
"""How long a coroutine that was cancelled may take to end."""


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
        self.late = False
        self.over = False
        """Whether its end was passed on."""


_flight: ContextVar[Flight] = ContextVar("flight")


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
        while not self._loop.is_closed():
            try:
                self._loop.run_forever()
            except BaseException:
                log.exception("a callback of a step ended the event loop")
            else:
                log.error("a step has stopped the event loop")

    def _start_task(self, flight: Flight) -> None:
        _flight.set(flight)  # the context is this callback's own
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
            flight.task.cancel()
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
        shown = _ShownCoroutine(coroutine, flight.place, self._shared)
        task = asyncio.Task(shown, loop=loop, **given)
        flight.tasks.add(task)
        task.add_done_callback(flight.tasks.discard)
        return task

    # In a thread of the call's own

    def _call_in_thread(self, flight: Flight) -> None:
        came: dict[str, Any] = {}
        try:
            close_old_connections()
            came["result"] = flight.call.call()
        except Exception as error:  # noqa: BLE001  # a step may raise anything
            came["error"] = error
        finally:
            connections.close_all()
        self._loop.call_soon_threadsafe(lambda: self._end(flight, **came))


class _ShownCoroutine(Coroutine[Any, Any, Any]):
    """A coroutine of a call, which shows the call while it runs and so blocks all others."""

    def __init__(
        self, coroutine: Coroutine[Any, Any, Any], place: int, shared: SharedCalls
    ) -> None:
        self._coroutine, self._place, self._shared = coroutine, place, shared
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
