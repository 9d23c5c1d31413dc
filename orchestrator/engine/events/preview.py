"""What an event would lead to in a process, without leading to it: decided by the pure core, on what is stored.

No handler runs and nothing is written. The definition's own predicates and the functions that give its data run, as
they do whenever it decides: they are to be pure. What one of them writes to the database all the same is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db import transaction

from orchestrator import registry
from orchestrator.definition import Event, ProcessManager
from orchestrator.definition.codec import decode, encode
from orchestrator.engine import inbox
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.application_code import applications
from orchestrator.engine.change.incidents import named
from orchestrator.engine.events.delivery import of_key
from orchestrator.engine.steps.waits import Waiting
from orchestrator.engine.storage import definitions
from orchestrator.models import ProcessInstance
from orchestrator.registry import DefinitionClass

Outcome = Literal[
    "moved",
    "started",
    "ignored",
    "rejected",
    "parked",
    "ended",
    "paused",
    "not_known",
    "unrouted",
    "failed",
]


@dataclass(frozen=True)
class Preview:
    """What would become of an event.

    Args:
        outcome: what the process would do with it; it has ended, is paused, knows no such event, or cannot decide; or
            it would be started, or there would be none.
        step: in which it stands; of a workflow that which would take it.
        to: the step it would go to; "" where it stays, or goes on by its graph.
        commands: the types of those that it would issue, in their order.
        before, after: the data.
        why: what stands in the way.
    """

    outcome: Outcome
    step: str = ""
    to: str = ""
    commands: tuple[str, ...] = ()
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""


def preview(kind: str, body: object, process: ProcessInstance) -> Preview:
    """What an event would lead to in a process as it is stored.

    Args:
        kind: the event's type.
        body: its fields as JSON values.
        process: neither locked nor changed.
    """
    if process.finished_at is not None:
        return Preview("ended", process.step)
    found = _without_trace(lambda: _decided(kind, body, process), kind, body, process)
    if process.paused_at is not None and found.outcome == "moved":
        return Preview("paused", process.step)
    return found


def foresee(
    kind: str, body: object, name: str = "", key: str = ""
) -> list[tuple[str, ProcessInstance | None, Preview]]:
    """What each definition that knows a type would do with an event that names no process.

    Args:
        kind: the event's type.
        body: its fields as JSON values.
        name: of the definition that it is for; "" for all.
        key: the correlation key; read from the event where it is empty.

    Returns:
        For each the definition's name, the process that it would find, if any, and what it would lead to.
    """
    known = [one for one in registry.receivers(kind) if name in ("", one.name)]
    return [(one.name, *_foreseen(one, kind, body, key)) for one in known]


def _foreseen(
    definition: DefinitionClass, kind: str, body: object, key: str
) -> tuple[ProcessInstance | None, Preview]:
    try:
        key = key or inbox.key_of(definition, inbox.read(kind, body))
    except Exception as error:  # noqa: BLE001  # the application's code may raise anything
        secret_values.note_of_message(error, kind, body)
        return None, Preview("failed", why=named(error))
    starts = kind in definition.starting_events()
    pk = of_key(definition.name, key, starts=starts) if key else None
    if pk is not None:
        process = ProcessInstance.objects.select_related("definition").get(pk=pk)
        return process, preview(kind, body, process)
    if not (starts and issubclass(definition, ProcessManager)):
        return None, Preview("unrouted")
    return None, _without_trace(lambda: _starting(definition, kind, body), kind, body)


def _starting(definition: type[ProcessManager], kind: str, body: object) -> Preview:
    """What a starting event would lead to."""
    message = inbox.read(kind, body)
    with applications():
        decision = definition.decide(definition.first, None, message)
    if decision.outcome != "moved":
        return Preview("unrouted")
    commands = tuple(type(command).__name__ for command in decision.commands)
    first, to = str(definition.first), str(decision.step)
    return Preview("started", first, to, commands, {}, encode(decision.data))


def _without_trace(
    decide: Callable[[], Preview],
    kind: str,
    body: object,
    process: ProcessInstance | None = None,
) -> Preview:
    """What is decided, after all that was written for it is undone."""
    try:
        with transaction.atomic():
            found = decide()
            transaction.set_rollback(True)
    except Exception as error:  # noqa: BLE001  # the application's code may raise anything
        secret_values.note_of_message(error, kind, body)
        if process is not None:
            secret_values.note_of_process(error, process, body)
        step = process.step if process is not None else ""
        return Preview("failed", step, why=named(error))
    return found


def _decided(kind: str, body: object, process: ProcessInstance) -> Preview:
    definition = definitions.definition_of(process)
    if kind not in definition.events:
        return Preview("not_known", process.step)
    message = inbox.read(kind, body)
    if issubclass(definition, ProcessManager):
        with applications():
            data = decode(definition.Data, process.data)
            return _by_manager(definition, process.step, data, message)
    run = Waiting(process, definitions.plan_of(process)).taking(message)
    if run is None:
        return Preview("parked", process.step)
    return Preview("moved", run.node)


def _by_manager(
    definition: type[ProcessManager], step: str, data: Any, message: Event
) -> Preview:
    decision = definition.decide(definition.Step(step), data, message)
    moved = decision.outcome == "moved"
    return Preview(
        decision.outcome,
        str(step),
        str(decision.step) if decision.entered else "",
        tuple(type(command).__name__ for command in decision.commands),
        encode(data) if data is not None and moved else {},
        encode(decision.data) if moved else {},
    )
