"""Repairing a process manager: edits of its data and its step, failed commands, and events that never arrived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from typing import Any

from orchestrator.definition import Decision, ProcessManager
from orchestrator.definition.codec import decode, encode
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.incidents import named_error
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.change.workflows import retrying
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.processes.retry import wake_workers
from orchestrator.engine.operations.processes.skip import (
    find_skippable,
    give_up_command,
)
from orchestrator.engine.operations.repairing.edits import OF_WORKFLOWS, Edit, EditKind
from orchestrator.engine.operations.repairing.plan import (
    Edited,
    Effect,
    RepairPlan,
    lost_key,
)
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.application_code.calling import ApplicationCall
from orchestrator.exceptions import InvalidMessage, OperationRefused
from orchestrator.models import IssuedCommand, ProcessInstance
from orchestrator.text import Text


@dataclass
class ManagerPlan(RepairPlan):
    """The step and data of a process manager after a repair."""

    _: KW_ONLY
    instance: ProcessInstance
    definition: type[ProcessManager]
    step: StrEnum | None = None
    """Its step after the repair; None if the running code does not have its step."""
    data: Any = None
    moved: bool = False
    changed: bool = False
    then: tuple[StrEnum, Any] | None = None
    """Step and data after the added events, if they move the process."""
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
            why_no_move(self.definition, self.instance, edit.target)
        )
        self.step, self.moved = self.definition.Step(edit.target), True
        self.stands.append(edit.target)
        self.leaves.append(self.instance.step)

    def _plan_retry(self, place: int, edit: Edit) -> None:
        edits = (one for one in self.edits if one.kind == EditKind.SKIP_COMMAND)
        skipped = [one.target for one in edits]
        self.again = True
        # With the same idempotency key as before.
        self.effects += [
            Effect(row.type, "command", again=True)
            for row in self.instance.commands.failing()
            if str(row.pk) not in skipped
        ]

    def _plan_skipped(self, place: int, edit: Edit) -> None:
        self.skipped.append(find_skippable(self.instance.commands, edit.target))

    def _plan_event(self, place: int, edit: Edit) -> None:
        message = self.read_event(self.definition.name, self.definition.events, edit)
        step, data = self.then or (self.step, self.data)
        if step is None or data is None:
            return  # the plan has a mistake of another edit for it
        if step in self.definition.finals:
            raise OperationRefused(
                Text("the process would have ended: nothing takes it")
            )
        try:
            with ApplicationCall(self.definition.name):
                decision = self.definition.decide(step, data, message)
        except BaseException as error:  # noqa: BLE001  # predicates may raise anything
            secret_values.attach_process(error, self.instance, edit.value)
            raise OperationRefused(
                "it could not be handled: %(why)s", named_error(error)
            ) from None
        if decision.outcome == "moved":
            self.then = (decision.step, decision.data)
            self.effects += _command_effects(decision, self.instance)

    def carry_out(self, press: Press) -> dict[str, Any]:
        change = ManagerChange(self.instance, press.cause, press.now)
        for row in self.skipped:
            give_up_command(change, row)
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
        """The person's edits of step and data, in the form of a decision of the definition."""
        if self.step is None:
            raise OperationRefused(
                Text("the running code has not the step in which it stands")
            )
        timers = self.definition.timers(self.step) if self.moved else ()
        return Decision(
            "moved", self.step, self.data, timers=timers, entered=self.moved
        )


def plan_manager_repair(instance: ProcessInstance, edits: list[Edit]) -> ManagerPlan:
    """Return the plan of edits to a process manager.

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
            why = Text("its stored data must be edited too: %(why)s", mistake)
            for place in range(len(edits)):
                plan.refuse(place, why)
            return plan
    plan.plan_each()
    return plan


def why_no_move(
    definition: type[ProcessManager], instance: ProcessInstance, step: str
) -> str:
    """Return why a process cannot move to a step; "" if it can."""
    if step not in {*map(str, definition.Step)}:
        return Text("the running code has no step %(step)s", step)
    if step == definition.first:
        return Text("processes start there: none waits in it")
    return Text("it stands there now") if step == instance.step else ""


def _command_effects(decision: Decision, instance: ProcessInstance) -> list[Effect]:
    """The commands that an added event would issue.

    A second command of a type has an id of its own, so its handler cannot recognise a repetition of the first.
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
