"""Commands whose handlers wait outside, after their transition's commit: one worker calls many of them at once."""

from __future__ import annotations

from inspect import iscoroutinefunction
from typing import Any

from orchestrator.definition.declarations.handlers import (
    Answer,
    Handler,
    function_in_use,
)
from orchestrator.engine.events import outbox
from orchestrator.engine.sql.connection import note_uncertain_commit, passes
from orchestrator.engine.storage.application_code.calling import (
    ApplicationCall,
    call_application,
)
from orchestrator.engine.storage.application_code.errors import as_failure
from orchestrator.engine.work import failures, releasing
from orchestrator.engine.work.call_room import Room
from orchestrator.engine.work.calls import Call
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.models import IssuedCommand
from orchestrator.queue import base_queue


class CommandCall(Call):
    """A command whose handler waits outside.

    Args:
        command: the claimed row.
        handler: its handler.
        worker_slice: the worker's slice.
    """

    def __init__(
        self, command: IssuedCommand, handler: Handler, worker_slice: WorkerSlice
    ) -> None:
        asynchronous = iscoroutinefunction(function_in_use(handler.function))
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
        self.message, self.context = outbox.arguments(command, handler)

    def call(self) -> Answer:
        given = (self.message, self.context)
        return call_application(self.command.type, self.handler, *given)

    async def wait(self) -> Answer:
        with ApplicationCall(self.command.type):
            returned = await self.handler.call_function(self.message, self.context)
            return self.handler.to_answer(returned)

    def store_result(self, result: Any) -> Call | None:
        with self.worker_slice.watched(self.command):
            try:
                outbox.settle_command(self.command, result)
            except BaseException as error:
                if passes(error):  # the answer is kept, and stored later
                    note_uncertain_commit()
                    raise
                self.store_error(as_failure(error, self.command.type))
        return None

    def store_error(self, error: Exception) -> Call | None:
        with self.worker_slice.watched(self.command):
            failures.fail_work(self.command, error, self.handler.attempts)
        return None


def prepare_command_call(
    command: IssuedCommand, worker_slice: WorkerSlice, room: Room
) -> Call | None:
    """Prepare the call of a claimed command's handler. Return None where it is not called now, and store that."""
    handler = outbox.handler_of(command)
    with worker_slice.watched(command):
        try:
            if handler is not None and not handler.is_call:
                releasing.move_to_queue(command, base_queue(command.queue))
                return None
            mine = room.taken(command.type)
            if handler is not None and mine >= (handler.threads or mine + 1):
                room.note_full(command.type)
                releasing.release_at_once(command)
                return None
            found = outbox.check_handler(command, handler)
            return CommandCall(command, found, worker_slice)
        except BaseException as error:  # noqa: BLE001  # it may not be read any more
            failures.fail_work(command, error, outbox.attempts_limit(handler))
    return None
