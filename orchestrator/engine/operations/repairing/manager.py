"""Repairing a process manager: its data, its step, commands that failed, events that never came."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any

from orchestrator.definition import Decision, ProcessManager
from orchestrator.definition.codec import decode, encode
from orchestrator.engine.change import retrying, secret_values
from orchestrator.engine.change.application_code import applications
from orchestrator.engine.change.incidents import named
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.repairing.edits import OF_WORKFLOWS, Edit, EditKind
from orchestrator.engine.operations.repairing.plan import (
    Edited,
    Effect,
    RepairPlan,
    lost_key,
)
from orchestrator.engine.operations.retry import wake_workers
from orchestrator.engine.operations.skip_command import failing, give_up
from orchestrator.engine.storage import definitions
from orchestrator.exceptions import InvalidMessage, OperationRefused
from orchestrator.models import IssuedCommand, ProcessInstance
from orchestrator.text import Text


@dataclass
class ManagerPlan(RepairPlan):
    """How a process manager would stand, and what of it is made when the repair is applied."""

    _: KW_ONLY
    instance: ProcessInstance
    definition: type[ProcessManager]
    step: StrEnum | None = None
    """In which it would stand; None where the running code does not have its step."""
    data: Any = None
    moved: bool = False
    changed: bool = False
    then: tuple[StrEnum, Any] | None = None
    """Step and data after the events that are added, where they move it on."""
    skipped: list[IssuedCommand] = field(default_factory=list)

    def plan_edit(self, place: int, edit: Edit) -> None:
        if edit.kind in OF_WORKFLOWS:
            raise OperationRefused(
                Text("Only a workflow has steps that run by themselves")
            )
        PLANNED[edit.kind](self, place, edit)

    def _plan_data(self, place: int, edit: Edit) -> None:
        data = decode(self.definition.Data, edit.value)
        body = encode(data)
        if reason := lost_key(self.definition, self.instance, data):
            self.refuse(place, reason, self.definition.correlation)
            return
        self.data, self.changed = data, True
        self.edited.append(Edited("", self.instance.data, body))

    def _plan_move(self, place: int, edit: Edit) -> None:
        OperationRefused.raise_for(
            why_not_to(self.definition, self.instance, edit.target)
        )
        self.step, self.moved = self.definition.Step(edit.target), True
        self.stands.append(edit.target)
        self.leaves.append(self.instance.step)

    def _plan_retry(self, place: int, edit: Edit) -> None:
        skipped = [
            one.target for one in self.edits if one.kind == EditKind.SKIP_COMMAND
        ]
        rows = [
            row
            for row in self.instance.commands.failing()
            if str(row.pk) not in skipped
        ]
        self.again = True
        # With the same idempotency key as before.
        self.effects += [Effect(row.type, "command", again=True) for row in rows]

    def _plan_skipped(self, place: int, edit: Edit) -> None:
        self.skipped.append(failing(self.instance.commands, edit.target))

    def _plan_event(self, place: int, edit: Edit) -> None:
        message = self.read_event(self.definition.name, self.definition.events, edit)
        step, data = self.then or (self.step, self.data)
        if step is None or data is None:
            return  # another edit is refused for that
        if step in self.definition.finals:
            raise OperationRefused(
                Text("the process would have ended: nothing takes it")
            )
        try:
            with applications():
                decision = self.definition.decide(step, data, message)
        except Exception as error:  # noqa: BLE001  # predicates may raise anything
            secret_values.note_of_process(error, self.instance, edit.value)
            raise OperationRefused(
                "it could not be handled: %(why)s", named(error)
            ) from None
        if decision.outcome == "moved":
            self.then = (decision.step, decision.data)
            self.effects += _issued(decision, self.instance)

    def carry_out(self, press: Press) -> dict[str, Any]:
        change = ManagerChange(self.instance, press.cause, press.now)
        for row in self.skipped:
            give_up(change, row)
        if self.again:
            retrying.try_commands_again(change)
            retrying.try_events_again(change)
        if self.moved or self.changed:
            change.take(self.definition, self._decision())
        self.add_events(change, press)
        change.write()
        if self.again:
            wake_workers(self.instance)
        return {"data": self.instance.data}

    def _decision(self) -> Decision:
        """What a person has decided, as the definition would have."""
        if self.step is None:
            raise OperationRefused(
                Text("the running code has not the step in which it stands")
            )
        timers = self.definition.timers(self.step) if self.moved else ()
        return Decision(
            "moved", self.step, self.data, timers=timers, entered=self.moved
        )


def planned(instance: ProcessInstance, edits: list[Edit]) -> ManagerPlan:
    """What edits of a process manager would come to.

    Raises:
        UnknownDefinition: the running code no longer has its definition.
    """
    definition = definitions.manager_of(instance)
    plan = ManagerPlan(edits, instance=instance, definition=definition)
    plan.step = next((s for s in definition.Step if s == instance.step), None)
    try:
        plan.data = decode(definition.Data, instance.data)
    except InvalidMessage as mistake:
        if all(edit.kind != EditKind.DATA for edit in edits):
            for place in range(len(edits)):
                plan.refuse(
                    place,
                    Text("its stored data must be edited too: %(why)s", mistake),
                )
            return plan
    plan.plan_each()
    return plan


def why_not_to(
    definition: type[ProcessManager], instance: ProcessInstance, step: str
) -> str:
    """Why a process cannot be moved to a step; "" if it can."""
    if step not in {*map(str, definition.Step)}:
        return Text("the running code has no step %(step)s", step)
    if step == definition.first:
        return Text("processes start there: none waits in it")
    return Text("it stands there now") if step == instance.step else ""


def _issued(decision: Decision, instance: ProcessInstance) -> list[Effect]:
    """The commands that an added event would issue.

    One of a type that was issued before has another id now: nothing tells its handler that the effect is there already.
    """
    names = [type(command).__name__ for command in decision.commands]
    issued = instance.commands.filter(type__in=names).order_by()
    known = set(issued.values_list("type", flat=True).distinct())
    return [Effect(name, "command", again=name in known, safe=False) for name in names]


PLANNED: dict[EditKind, Callable[[ManagerPlan, int, Edit], None]] = {
    EditKind.DATA: ManagerPlan._plan_data,
    EditKind.MOVE: ManagerPlan._plan_move,
    EditKind.RETRY: ManagerPlan._plan_retry,
    EditKind.SKIP_COMMAND: ManagerPlan._plan_skipped,
    EditKind.EVENT: ManagerPlan._plan_event,
}
