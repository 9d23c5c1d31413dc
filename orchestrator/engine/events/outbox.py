"""Carrying out one claimed command after its transition's commit: at least once, with its id as idempotency key."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from typing import Any

from django.db import transaction

from orchestrator import registry
from orchestrator.definition.codec import decode
from orchestrator.engine import inbox
from orchestrator.engine.change import incidents, secret_values
from orchestrator.engine.change.application_code import (
    applications,
    blocking_transaction,
)
from orchestrator.engine.change.change import settle_unmoved
from orchestrator.engine.change.manager import release
from orchestrator.engine.claims import give_back, leases
from orchestrator.engine.failures import of_work
from orchestrator.engine.storage import uncertain
from orchestrator.engine.storage.batch import Statement
from orchestrator.engine.storage.tables import commands, instances
from orchestrator.exceptions import HandlerMissing
from orchestrator.models import (
    CauseKind,
    CommandStatus,
    Delivery,
    IssuedCommand,
)
from orchestrator.queue import calls_queue, holds_calls, wake_queue_after_commit
from orchestrator.registry import Answer, CommandContext, Handler
from orchestrator.text import Text, storable_text

log = logging.getLogger(__name__)


def carry_out(command: IssuedCommand) -> None:
    """Runs a claimed command's handler and stores the outcome; nothing is raised for a failing handler."""
    handler = handler_of(command)
    try:
        if handler is not None and handler.is_call and not holds_calls(command.queue):
            give_back.to_queue(command, calls_queue(command.queue))
            return
        _carry_out(command, checked(command, handler))
    except Exception as error:  # noqa: BLE001  # a handler may raise anything
        of_work.of_work(command, error, attempts_of(handler))


def checked(command: IssuedCommand, handler: Handler | None) -> Handler:
    """The handler of a command that may be tried now.

    Raises:
        HandlerMissing: the running code has none.
        WorkerDied: it has ended a worker in each of its attempts.
    """
    if handler is None:
        raise HandlerMissing(
            "no handler for %(type)s in the running code", command.type
        )
    of_work.check_attempts(command, handler.attempts)
    return handler


def attempts_of(handler: Handler | None) -> int:
    """How often a command is tried in all."""
    return handler.attempts if handler else 1


def handler_of(command: IssuedCommand) -> Handler | None:
    """The function that carries a command out, in the running code."""
    if command.delivery == Delivery.REACTION:
        return registry.find_reaction(command.type)
    return registry.command_handler(command.type)


def _carry_out(command: IssuedCommand, handler: Handler) -> None:
    asked = time.monotonic()
    message, context = given(command, handler)
    if leases.may_end(asked):
        uncertain.note()  # others may have carried it out before the answer came
        return
    if command.delivery == Delivery.REACTION:
        with transaction.atomic(durable=True):
            with blocking_transaction(command.type):
                answer = handler(message, context)
            _settle(command, answer)
    else:
        with applications():
            answer = handler(message, context)
        settle(command, answer)


def given(command: IssuedCommand, handler: Handler) -> tuple[Any, CommandContext]:
    """What a command's handler is called with."""
    key = command.instance.correlation_key if command.instance else ""
    context = CommandContext(command.instance_id, command.pk, command.attempt, key)
    return decode(handler.message, command.body), context


def settle(command: IssuedCommand, answer: Answer) -> None:
    """Stores what the handler of a command has answered after its commit."""
    with transaction.atomic(durable=True):
        _settle(command, answer)


def _settle(command: IssuedCommand, answer: Answer) -> None:
    instance, now = instances.lock(command.instance_id)
    marks = [_done(command, answer, now), *release(command, now)]
    marks += _caused(command, answer, now)
    if command.error:
        marks.append(incidents.resolved(Text("done"), now, command_id=command.pk))
    settle_unmoved(instance, CauseKind.COMMAND, command, marks, now)


def _done(command: IssuedCommand, answer: Answer, now: datetime) -> Statement:
    values = {
        "status": CommandStatus.DONE,
        "answer": storable_text(
            secret_values.line_without(answer.text, command.type, command.body)
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
    return inbox.stored(rows)
