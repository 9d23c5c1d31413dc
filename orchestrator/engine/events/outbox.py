"""Carrying out one claimed command after its transition's commit: at least once, with its id as the idempotency key."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q

from orchestrator import registry
from orchestrator.definition.declarations.handlers import (
    Answer,
    CommandContext,
    Handler,
)
from orchestrator.engine.change import incidents, secret_values
from orchestrator.engine.change.change import settle_without_move
from orchestrator.engine.change.manager import wake_next
from orchestrator.engine.sql.batch import Statement, database_now, send
from orchestrator.engine.sql.connection import note_uncertain_commit
from orchestrator.engine.sql.tables import IN_LINE, commands, instances
from orchestrator.engine.storage import inbox
from orchestrator.engine.storage.application_code.calling import (
    BlockingTransaction,
    call_application,
)
from orchestrator.engine.storage.stored_values import read_message
from orchestrator.engine.work import failures, leases, releasing
from orchestrator.engine.work.keeping import store_outcome
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.exceptions import HandlerMissing
from orchestrator.models import CauseKind, CommandStatus, Delivery, IssuedCommand
from orchestrator.queue import calls_queue, holds_calls, wake_queue_after_commit
from orchestrator.text import Text, storable_text

log = logging.getLogger(__name__)


def carry_out_command(command: IssuedCommand, worker_slice: WorkerSlice) -> None:
    """Run a claimed command's handler and store the outcome. This raises nothing: every error is stored."""
    handler = handler_of(command)
    try:
        if handler is not None and handler.is_call and not holds_calls(command.queue):
            releasing.move_to_queue(command, calls_queue(command.queue))
            return
        _carry_out(command, check_handler(command, handler), worker_slice)
    except BaseException as error:  # noqa: BLE001  # a handler may raise anything
        failures.fail_work(command, error, attempts_limit(handler), worker_slice)


def check_handler(command: IssuedCommand, handler: Handler | None) -> Handler:
    """Return the handler of a command, if the command may be tried now.

    Raises:
        HandlerMissing: the running code has none.
        WorkerDied: the command has ended a worker in each of its attempts.
    """
    if handler is None:
        raise HandlerMissing(
            "no handler for %(type)s in the running code", command.type
        )
    failures.check_attempts(command, handler.attempts)
    return handler


def attempts_limit(handler: Handler | None) -> int:
    """Return the most attempts of a command."""
    return handler.attempts if handler else 1


def handler_of(command: IssuedCommand) -> Handler | None:
    """Return the handler of a command in the running code, if there is one."""
    if command.delivery == Delivery.REACTION:
        return registry.find_reaction(command.type)
    return registry.command_handler(command.type)


def _carry_out(
    command: IssuedCommand, handler: Handler, worker_slice: WorkerSlice
) -> None:
    asked = time.monotonic()
    message, context = arguments(command, handler)
    if leases.lease_may_end(asked):
        note_uncertain_commit()  # another worker may have carried it out before the answer came
        return
    if command.delivery == Delivery.REACTION:
        with transaction.atomic(durable=True):
            if command.line and (older := unsettled_before(command)) is not None:
                later = None if older.owner else older.wake_at
                send([releasing.release(command, later or database_now())])
                return
            kind = command.type
            with BlockingTransaction(kind):
                answer = call_application(kind, handler, message, context)
            _settle(command, answer)
    else:
        answer = call_application(command.type, handler, message, context)
        store = partial(settle_command, command, answer)
        store_outcome(command, worker_slice, store)


def unsettled_before(command: IssuedCommand) -> IssuedCommand | None:
    """Return the first unsettled reaction before another one in its line."""
    at = command.issued_at
    earlier = Q(issued_at__lt=at) | Q(issued_at=at, pk__lt=command.pk)
    mine = IssuedCommand.objects.filter(type=command.type, line=command.line)
    unsettled = mine.exclude(line="").filter(earlier, wake_at__isnull=False)
    return unsettled.order_by("issued_at", "pk").only("owner", "wake_at").first()


def arguments(command: IssuedCommand, handler: Handler) -> tuple[Any, CommandContext]:
    """Return the arguments of a command's handler: message and context.

    Raises:
        UnreadableValue: the running code cannot read the stored command.
    """
    found, _ = instances.read(command.instance_id)
    if found is not None:
        command.instance = found
    key = found.correlation_key if found is not None else ""
    context = CommandContext(command.instance_id, command.pk, command.attempt, key)
    return read_message(handler.message, command.body), context


def settle_command(command: IssuedCommand, answer: Answer) -> None:
    """Store the answer of a command's handler."""
    with transaction.atomic(durable=True):
        _settle(command, answer)


def _settle(command: IssuedCommand, answer: Answer) -> None:
    instance, now = instances.lock(command.instance_id)
    marks = [_done(command, answer, now), *wake_next(command, now)]
    marks += _caused(command, answer, now)
    if command.error:
        marks.append(incidents.resolve(Text("done"), now, command_id=command.pk))
        marks += _wake_line(command, now)
    settle_without_move(instance, CauseKind.COMMAND, command, marks, now)


def _wake_line(command: IssuedCommand, now: datetime) -> list[Statement]:
    """The update that makes due what slept until the next attempt of a reaction before it."""
    if not command.line:
        return []
    behind = {"type": command.type, "line": command.line, "owner": "", "error": ""}
    return [commands.update({"wake_at": now}, behind, None, IN_LINE)]


def _done(command: IssuedCommand, answer: Answer, now: datetime) -> Statement:
    values = {
        "status": CommandStatus.DONE,
        "answer": storable_text(
            secret_values.mask_line(answer.text, command.type, command.body)
        ),
        "follow_ups": len(answer.events),
        "error": "",
        "wake_at": None,
        "owner": "",
        "finished_at": now,
    }
    return commands.update(values, command.fence)


def _caused(command: IssuedCommand, answer: Answer, now: datetime) -> list[Statement]:
    if not answer.events:
        return []
    rows = inbox.follow_ups(command.instance, answer.events, command.pk, now)
    for queue in {row.queue for row in rows}:
        wake_queue_after_commit(queue)
    return inbox.event_inserts(rows)
