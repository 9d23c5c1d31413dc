"""Commands whose handlers wait outside, after their transition's commit: each is called beside many others."""

from __future__ import annotations

from typing import Any

from orchestrator.definition.invalid import is_asynchronous
from orchestrator.engine.change.application_code import contained
from orchestrator.engine.claims import give_back
from orchestrator.engine.claims.calls import Call
from orchestrator.engine.claims.room import Room
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.events import outbox
from orchestrator.engine.failures import of_work
from orchestrator.engine.storage import uncertain
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.models import IssuedCommand
from orchestrator.queue import base_queue
from orchestrator.registry import Answer, Handler, function_in_use


class CommandCall(Call):
    """A command whose handler waits outside.

    Args:
        command: the claimed row.
        handler: that carries it out.
        worker_slice: of the worker.
    """

    def __init__(
        self, command: IssuedCommand, handler: Handler, worker_slice: WorkerSlice
    ) -> None:
        asynchronous = is_asynchronous(function_in_use(handler.function))
        super().__init__(
            command,
            timeout=handler.timeout,
            heartbeat=None,
            idempotent=True,  # at least once, with its id as idempotency key
            threads=None if asynchronous else handler.threads or 1,
            kind=command.type,
        )
        self.command, self.handler = command, handler
        self.worker_slice = worker_slice
        self.message, self.context = outbox.given(command, handler)

    def call(self) -> Answer:
        with contained(self.command.type):
            return self.handler(self.message, self.context)

    async def wait(self) -> Answer:
        with contained(self.command.type):
            returned = await self.handler.call_function(self.message, self.context)
            return self.handler.to_answer(returned)

    def returned(self, result: Any) -> Call | None:
        with self.worker_slice.watched(self.command):
            try:
                outbox.settle(self.command, result)
            except Exception as error:
                if passes(error):  # what it has answered is not given up for that
                    uncertain.note()
                    raise
                self.failed(error)
        return None

    def failed(self, error: Exception) -> Call | None:
        with self.worker_slice.watched(self.command):
            of_work.of_work(self.command, error, self.handler.attempts)
        return None


def begin(command: IssuedCommand, worker_slice: WorkerSlice, room: Room) -> Call | None:
    """Prepares the call of a claimed command's handler; None when there is none now, which is stored."""
    handler = outbox.handler_of(command)
    with worker_slice.watched(command):
        try:
            if handler is not None and not handler.is_call:
                give_back.to_queue(command, base_queue(command.queue))
                return None
            mine = room.taken(command.type)
            if handler is not None and mine >= (handler.threads or mine + 1):
                room.note_full(command.type)
                give_back.at_once(command)
                return None
            return CommandCall(command, outbox.checked(command, handler), worker_slice)
        except Exception as error:  # noqa: BLE001  # it may not be read any more
            of_work.of_work(command, error, outbox.attempts_of(handler))
    return None
