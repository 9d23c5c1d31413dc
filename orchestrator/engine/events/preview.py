"""What an event would lead to in a process, without leading to it: decided by the pure core, on what is stored.

No handler runs and nothing is written. The definition's own predicates and the functions that give its data run, as
they do whenever it decides: they are to be pure. What one of them writes to the database all the same is undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db import transaction

from orchestrator.definition import Event, ProcessManager
from orchestrator.definition.codec import decode, encode
from orchestrator.engine import inbox
from orchestrator.engine.change.application_code import applications
from orchestrator.engine.change.incidents import named
from orchestrator.engine.steps.waits import Waiting
from orchestrator.engine.storage import definitions
from orchestrator.models import ProcessInstance

Outcome = Literal[
    "moved", "ignored", "rejected", "parked", "ended", "paused", "not_known", "failed"
]


@dataclass(frozen=True)
class Preview:
    """What would become of an event.

    Args:
        outcome: what the process would do with it; it has ended, is paused, knows no such event, or cannot decide.
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
    try:
        with transaction.atomic():
            found = _decided(kind, body, process)
            transaction.set_rollback(True)
    except Exception as error:  # noqa: BLE001  # the application's code may raise anything
        return Preview("failed", process.step, why=named(error))
    if process.paused_at is not None and found.outcome == "moved":
        return Preview("paused", process.step)
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
