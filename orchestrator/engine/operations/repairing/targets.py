"""The choices of a person for a repair of a process or of one of its steps, and why others are not possible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orchestrator.definition import ProcessManager
from orchestrator.definition.codec import canonical_json
from orchestrator.engine.change.workflows import redoing, retrying
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.operations.repairing.manager import why_no_move
from orchestrator.engine.operations.repairing.plan import refuse_code_errors
from orchestrator.engine.operations.repairing.workflow import (
    awaited_events,
    why_no_result,
)
from orchestrator.engine.operations.visits.skip import check_can_be_skipped
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.storage import definitions
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
"""Commands, steps in trouble and visits on one page."""

LARGE = 16 * 1024

MOST_STEPS = 2_000
"""Steps in the list of choices; in a larger graph a person types the name of a step."""


@dataclass(frozen=True)
class Target:
    """A step, and why it is no choice; "" if it is."""

    name: str
    why: str = ""


@dataclass(frozen=True)
class VisitTarget:
    """A visit of the chosen step, with the reasons against a skip and against an edit of its result."""

    run: StepRun
    why_no_skip: str
    why_no_result: str

    @property
    def large(self) -> bool:
        """Whether its result is too large for the form of its page."""
        return len(canonical_json(self.run.result)) > LARGE

    @property
    def shown(self) -> Any:
        """Its result; None if that is too large."""
        return None if self.large else self.run.result


@dataclass
class Targets:
    """The choices for a repair."""

    needs_approval: bool = False
    steps: list[Target] = field(default_factory=list)
    """The steps of a process manager to which it can move."""
    events: list[str] = field(default_factory=list)
    commands: list[IssuedCommand] = field(default_factory=list)
    """The failing commands."""
    troubled: list[str] = field(default_factory=list)
    """The steps of a workflow that have failed, or wait for another attempt."""
    named: list[str] = field(default_factory=list)
    """The steps of a workflow."""
    redo: Target | None = None
    """The chosen step."""
    visits: list[VisitTarget] = field(default_factory=list)


def targets_of(
    instance: ProcessInstance, step: str = "", item: int | None = None
) -> Targets:
    """Return the choices for a repair of a stored process.

    Args:
        instance: the process.
        step: the chosen step of a workflow.
        item: the number of the chosen element of a map.

    Raises:
        UnknownDefinition: the running code no longer has its definition.
        OperationRefused: the application's code raises an error.
    """
    definition = definitions.definition_of(instance)
    found = Targets(definition.repair_needs_approval)
    if issubclass(definition, ProcessManager):
        found.events = sorted(definition.events)
        found.steps = [
            Target(str(one), why_no_move(definition, instance, str(one)))
            for one in definition.Step
        ]
        found.commands = list(instance.commands.failing().order_by("pk")[:SHOWN])
    else:
        _add_of_workflow(found, instance, step, item)
    return found


def _add_of_workflow(
    found: Targets, instance: ProcessInstance, step: str, item: int | None
) -> None:
    now = database_now()
    with refuse_code_errors(instance):
        change = WorkflowChange.of(instance, Cause.of(CauseKind.OPERATOR), now)
    found.events = sorted(awaited_events(change.plan))
    found.named = sorted(change.plan.vertices)[:MOST_STEPS]
    rows = (
        retrying.troubled_visits(change).order_by("pk").values_list("node", flat=True)
    )
    found.troubled = list(dict.fromkeys(rows[:SHOWN]))
    if step:
        found.redo = Target(step, redoing.why_no_redo(change, step))
        found.visits = _visits(change, step, item)


def _visits(change: WorkflowChange, step: str, item: int | None) -> list[VisitTarget]:
    """The newest visits of a step, or of the elements of a map, open visits first."""
    rows: Any = change.instance.step_runs.filter(node=step)
    rows = rows.exclude(kind__in=[StepKind.JOIN, StepKind.UNDO])
    if item is not None:
        rows = rows.filter(item=item)
    open_ones = list(rows.filter(finished_at=None).order_by("pk")[:SHOWN])
    over = rows.filter(finished_at__isnull=False).order_by("-pk")
    both = [*open_ones, *over[: SHOWN - len(open_ones)]]
    return [
        VisitTarget(run, _why_no_skip(run), why_no_result(change, run)) for run in both
    ]


def _why_no_skip(run: StepRun) -> str:
    if run.finished_at is not None:
        return Text("%(step)s is over meanwhile: %(status)s", run.node, run.status)
    try:
        check_can_be_skipped(run)
    except OperationRefused as refused:
        return refused.told
    return ""
