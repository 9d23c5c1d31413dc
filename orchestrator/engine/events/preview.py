"""Previewing the effect of an event on a process: decided by the pure core, on the stored rows.

No handler runs and nothing is written. The definition's predicates and the functions that return its data do run, as in
every decision: they should be pure. If one of them writes to the database nevertheless, that is rolled back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from django.db import transaction

from orchestrator import registry
from orchestrator.definition import Event, ProcessManager
from orchestrator.definition.codec import decode, encode
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.incidents import named_error
from orchestrator.engine.events.delivery import find_by_key
from orchestrator.engine.events.other_definitions import is_ignored
from orchestrator.engine.events.unrouted_events import ignores_missing
from orchestrator.engine.steps.waiting_steps import EventWaits
from orchestrator.engine.storage import definitions, inbox
from orchestrator.engine.storage.application_code.calling import ApplicationCall
from orchestrator.models import ProcessInstance
from orchestrator.registry import DefinitionClass

PreviewOutcome = Literal[
    "moved",
    "started",
    "ignored",
    "rejected",
    "parked",
    "ended",
    "paused",
    "not_known",
    "unrouted",
    "missing",
    "failed",
]


@dataclass(frozen=True)
class Preview:
    """The effect that an event would have.

    Args:
        outcome: the process's decision about the event; or that the process has ended, is paused, has no rows for the
            event or cannot decide; or that the event would start a process, or find none ("unrouted"; "missing" where
            the definition ignores it then).
        step: the process's step; in a workflow the step that would take the event; "" where a workflow that has ended
            ignores it.
        to: the step that the process would go to; "" where it stays, or goes on by its graph.
        commands: the types of the commands that it would issue, in their order.
        before, after: the data.
        why: the error.
    """

    outcome: PreviewOutcome
    step: str = ""
    to: str = ""
    commands: tuple[str, ...] = ()
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""


def preview_event(kind: str, body: object, process: ProcessInstance) -> Preview:
    """Return the effect that an event would have on a process as it is stored.

    Args:
        kind: the event's type.
        body: its fields as JSON values.
        process: the process; it is neither locked nor changed.
    """
    if process.finished_at is not None:
        ignored = is_ignored(kind, process)
        return Preview("ignored") if ignored else Preview("ended", process.step)
    found = _without_trace(lambda: _decided(kind, body, process), kind, body, process)
    decided = found.outcome in ("moved", "ignored", "rejected")
    if process.paused_at is not None and decided:
        return Preview("paused", process.step)
    return found


def preview_targets(
    kind: str, body: object, name: str = "", key: str = ""
) -> list[tuple[str, ProcessInstance | None, Preview]]:
    """Return the effect that an event without a process id would have in each definition with rows for its type.

    Args:
        kind: the event's type.
        body: its fields as JSON values.
        name: the name of the definition that it is for; "" for all.
        key: the correlation key; read from the event when empty.

    Returns:
        For each definition its name, the process that the event would find, if any, and the effect.
    """
    known = [one for one in registry.receivers(kind) if name in ("", one.name)]
    return [(one.name, *_effects_of(one, kind, body, key)) for one in known]


def _effects_of(
    definition: DefinitionClass, kind: str, body: object, key: str
) -> tuple[ProcessInstance | None, Preview]:
    try:
        key = key or inbox.correlation_of(definition, inbox.parse_event(kind, body))
    except BaseException as error:  # noqa: BLE001  # the application's code may raise anything
        secret_values.attach_message(error, kind, body)
        return None, Preview("failed", why=named_error(error))
    starts = registry.current_name(kind) in definition.starting_events()
    pk = find_by_key(definition.name, key, starts=starts) if key else None
    if pk is not None:
        process = ProcessInstance.objects.select_related("definition").get(pk=pk)
        return process, preview_event(kind, body, process)
    if not (starts and issubclass(definition, ProcessManager)):
        return None, _without_process(definition)
    return None, _without_trace(lambda: _starting(definition, kind, body), kind, body)


def _starting(definition: type[ProcessManager], kind: str, body: object) -> Preview:
    """The effect of an event that starts a process."""
    message = inbox.parse_event(kind, body)
    with ApplicationCall(definition.name):
        decision = definition.decide(definition.first, None, message)
    if decision.outcome != "moved":
        return _without_process(definition)
    commands = tuple(type(command).__name__ for command in decision.commands)
    first, to = str(definition.first), str(decision.step)
    return Preview("started", first, to, commands, {}, encode(decision.data))


def _without_process(definition: DefinitionClass) -> Preview:
    """The effect of an event that finds no process and starts none."""
    return Preview("missing" if ignores_missing(definition.name) else "unrouted")


def _without_trace(
    decide: Callable[[], Preview],
    kind: str,
    body: object,
    process: ProcessInstance | None = None,
) -> Preview:
    """The decision, after all that its functions have written is rolled back."""
    try:
        with transaction.atomic():
            found = decide()
            transaction.set_rollback(True)
    except BaseException as error:  # noqa: BLE001  # the application's code may raise anything
        secret_values.attach_message(error, kind, body)
        if process is not None:
            secret_values.attach_process(error, process, body)
        step = process.step if process is not None else ""
        return Preview("failed", step, why=named_error(error))
    return found


def _decided(kind: str, body: object, process: ProcessInstance) -> Preview:
    definition = definitions.definition_of(process)
    if registry.current_name(kind) not in definition.events:
        return Preview("not_known", process.step)
    message = inbox.parse_event(kind, body)
    if issubclass(definition, ProcessManager):
        with ApplicationCall(definition.name):
            data = decode(definition.Data, process.data)
            return _by_manager(definition, process.step, data, message)
    waits = EventWaits(process, definitions.plan_of(process))
    run = waits.find_taker(message)
    if run is None:
        return Preview(waits.outcome(message), process.step)
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
