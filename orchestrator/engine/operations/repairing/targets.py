"""What can be chosen for a repair, and why the rest cannot: of one process, and of one step of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orchestrator.definition import ProcessManager
from orchestrator.definition.codec import canonical
from orchestrator.engine.change import redoing, retrying
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.operations.repairing.manager import why_not_to
from orchestrator.engine.operations.repairing.plan import asked_of_code
from orchestrator.engine.operations.repairing.workflow import events_of, why_no_result
from orchestrator.engine.operations.skip import check_can_be_skipped
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.batch import database_now
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    Cause,
    CauseKind,
    IssuedCommand,
    ProcessInstance,
    StepKind,
    StepRun,
)
from orchestrator.text import Text

SHOWN = 20
"""Commands, steps in trouble and visits that are offered at once."""

LARGE = 16 * 1024

MOST_STEPS = 2_000
"""Steps that are offered; of a larger graph a step is named."""


@dataclass(frozen=True)
class Target:
    """A step, and why it cannot be chosen; "" if it can."""

    name: str
    why: str = ""


@dataclass(frozen=True)
class Visit:
    """A visit of the chosen step, and why it cannot be skipped, and why its result cannot be edited."""

    run: StepRun
    why_no_skip: str
    why_no_result: str

    @property
    def large(self) -> bool:
        """Whether its result is too large to be edited where it is shown."""
        return len(canonical(self.run.result)) > LARGE

    @property
    def shown(self) -> Any:
        """Its result, as long as that is not too large."""
        return None if self.large else self.run.result


@dataclass
class Targets:
    """What can be chosen."""

    needs_approval: bool = False
    steps: list[Target] = field(default_factory=list)
    """To which a process manager can be moved."""
    events: list[str] = field(default_factory=list)
    commands: list[IssuedCommand] = field(default_factory=list)
    """Those that fail."""
    troubled: list[str] = field(default_factory=list)
    """The steps of a workflow that have failed, or wait for another attempt."""
    named: list[str] = field(default_factory=list)
    """The steps of a workflow."""
    redo: Target | None = None
    """The chosen step."""
    visits: list[Visit] = field(default_factory=list)


def targets_of(
    instance: ProcessInstance, step: str = "", item: int | None = None
) -> Targets:
    """What can be chosen for a repair of a process as it is stored.

    Args:
        instance: the process.
        step: of a workflow the step that was chosen.
        item: of a map's elements that with this number.

    Raises:
        UnknownDefinition: the running code no longer has its definition.
        OperationRefused: the application's code raises something.
    """
    definition = definitions.definition_of(instance)
    found = Targets(definition.repair_needs_approval)
    if issubclass(definition, ProcessManager):
        found.events = sorted(definition.events)
        found.steps = [
            Target(str(one), why_not_to(definition, instance, str(one)))
            for one in definition.Step
        ]
        found.commands = list(instance.commands.failing().order_by("pk")[:SHOWN])
        return found
    now = database_now()
    with asked_of_code(instance):
        change = WorkflowChange.of(instance, Cause.of(CauseKind.OPERATOR), now)
    found.events = sorted(events_of(change.plan))
    found.named = sorted(change.plan.vertices)[:MOST_STEPS]
    rows = retrying.troubled(change).order_by("pk").values_list("node", flat=True)
    found.troubled = list(dict.fromkeys(rows[:SHOWN]))
    if step:
        found.redo = Target(step, redoing.why_not(change, step))
        found.visits = _visits(change, step, item)
    return found


def _visits(change: WorkflowChange, step: str, item: int | None) -> list[Visit]:
    """The newest visits of a step; of a map its elements, those that have not come to their end first."""
    rows: Any = change.instance.step_runs.filter(node=step)
    rows = rows.exclude(kind__in=[StepKind.JOIN, StepKind.UNDO])
    if item is not None:
        rows = rows.filter(item=item)
    open_ones = list(rows.filter(finished_at=None).order_by("pk")[:SHOWN])
    over = rows.filter(finished_at__isnull=False).order_by("-pk")
    both = [*open_ones, *over[: SHOWN - len(open_ones)]]
    return [Visit(run, _why_no_skip(run), why_no_result(change, run)) for run in both]


def _why_no_skip(run: StepRun) -> str:
    if run.finished_at is not None:
        return Text("%(step)s is over meanwhile: %(status)s", run.node, run.status)
    try:
        check_can_be_skipped(run)
    except OperationRefused as refused:
        return refused.told
    return ""
