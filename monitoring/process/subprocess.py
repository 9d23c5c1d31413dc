"""A sub-process opened on the page of a process above it: its state and its picture.

Each statement is bounded, for any number of steps, visits, children and siblings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from monitoring.base.requests import parse_uuid
from monitoring.diagrams import DiagramState
from monitoring.process.diagram import diagram_of
from monitoring.process.revision.moment import (
    ProcessMoment,
    process_moment,
    stored_drawing,
)
from monitoring.process.steps.step_states import step_states_of
from monitoring.process.steps.trouble import Trouble, trouble_of
from monitoring.process.steps.workflow import WorkflowView, workflow_view
from monitoring.queries.processes import process_rows
from orchestrator.models import Checkpoint, ProcessInstance
from orchestrator.snapshot import snapshot

DEEPEST = 50
"""The maximum number of processes between the page's process and the opened one."""

STEPS = 6
"""The maximum number of open steps that it shows."""


@dataclass(frozen=True)
class OpenedSubprocess:
    """The sub-process that the address of a page names.

    Args:
        asked: the text in the address.
        path: the processes from below the page's process to this one; empty if it is not below it.
        moment: the moment that is shown, at or before the page's; None if it had not begun.
        state: the state of its diagram.
        view: its open steps and children.
        trouble: its trouble now; None for the past.
    """

    asked: str
    path: Sequence[ProcessInstance] = ()
    moment: ProcessMoment | None = None
    state: DiagramState | None = None
    view: WorkflowView | None = None
    trouble: Trouble | None = None

    @property
    def present(self) -> ProcessInstance | None:
        """The sub-process now."""
        return self.path[-1] if self.path else None

    @property
    def instance(self) -> ProcessInstance | None:
        """The sub-process at the shown moment."""
        return self.moment.instance if self.moment is not None else self.present

    @property
    def above(self) -> Sequence[ProcessInstance]:
        """The processes between the page's process and this one."""
        return self.path[:-1]

    def for_whom(self, seen: frozenset[str] | None) -> OpenedSubprocess:
        """Return the part that a reader of these definitions may see; None for all definitions."""
        names = {process.name for process in self.path}
        return self if seen is None or names <= seen else OpenedSubprocess(self.asked)

    @property
    def drawn(self) -> str:
        """A text that changes when an open page has to replace the whole part."""
        if self.moment is None:
            return f"{self.asked}."
        pending = ".pending" if self.moment.drawing.pending else ""
        return f"{self.asked}.{self.moment.definition.fingerprint}{pending}"


def opened_subprocess(page: ProcessMoment, asked: str) -> OpenedSubprocess:
    """Read a sub-process at any depth for the page of a process above it.

    Args:
        page: the process of the page, at the shown moment.
        asked: the process id of the sub-process, from the address.
    """
    asked = asked[:36]
    for one in path_to(page.present, asked)[-1:]:
        stored_drawing(one.definition)  # cached
    with snapshot():
        path = path_to(page.present, asked)
        return _open_at(path, page.at) if path else OpenedSubprocess(asked)


def _open_at(path: Sequence[ProcessInstance], at: datetime | None) -> OpenedSubprocess:
    """Read the last process of a path until a moment; None for now."""
    child = path[-1]
    last = None if at is None else revision_at(child, at)
    if last == 0:
        return OpenedSubprocess(str(child.pk), path)
    moment = process_moment(child, last)
    states = step_states_of(moment)
    return OpenedSubprocess(
        str(child.pk),
        path,
        moment,
        diagram_of(moment, states),
        workflow_view(moment, states, STEPS),
        None if moment.is_past else trouble_of(child),
    )


def path_to(page: ProcessInstance, asked: str) -> list[ProcessInstance]:
    """Return the processes from below the page's process to a sub-process; empty if it is not below it."""
    wanted = parse_uuid(asked)
    rows = process_rows()
    path: list[ProcessInstance] = []
    while wanted is not None and wanted != page.pk and len(path) < DEEPEST:
        found = rows.filter(pk=wanted).first()
        if found is None:
            return []
        path.insert(0, found)
        wanted = found.parent_id
    return path if wanted == page.pk else []


def revision_at(instance: ProcessInstance, at: datetime) -> int:
    """Return the number of the last transition of a process until a moment; 0 if there was none.

    It bisects the index of transitions, so that a long history takes only a few more statements.
    """
    if instance.started_at > at:
        return 0
    numbers = Checkpoint.objects.filter(instance=instance).order_by("-revision")
    found, low, high = 0, 0, instance.revision
    middle = high  # most sub-processes had ended by then
    while low <= high:
        rows = numbers.filter(revision__gte=low, revision__lte=middle)
        last = rows.values_list("revision", "at").first()
        if last is None:
            low = middle + 1
        elif last[1] <= at:
            found, low = last[0], middle + 1
        else:
            high = last[0] - 1
        middle = (low + high) // 2
    return found
