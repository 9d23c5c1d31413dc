"""A sub-process that is opened on the page of a process that it is part of: how it stands, and its own picture.

Whatever its number of steps, visits and sub-processes, and that of its siblings, it takes some bounded looks more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from monitoring.diagrams import DiagramState, Drawing, drawing_of
from monitoring.queries.graphs import graph_of
from monitoring.queries.instance.past import PastMoment, moment_of
from monitoring.queries.instance.step_states import step_states_of
from monitoring.queries.instance.trouble import Trouble, trouble_of
from monitoring.queries.instance.workflow import (
    OpenStep,
    OpenThen,
    children_of,
    open_steps_of,
    painted,
    workflow_then,
)
from monitoring.queries.lists import uuid_in
from monitoring.queries.processes import processes
from orchestrator.models import Checkpoint, ProcessInstance
from orchestrator.snapshot import snapshot

DEEPEST = 50
"""Processes that may lie between the page's and the one that is opened."""

STEPS = 6
"""Open steps that are told of."""


@dataclass(frozen=True)
class CurrentStep:
    """A step in which it is: since when, what went wrong, how far it is, and the sub-process that it waits for."""

    label: str
    status: str
    since: datetime | None
    item: int | None = None
    error: str = ""
    progress: dict[str, Any] = field(default_factory=dict)
    child: ProcessInstance | None = None

    @classmethod
    def now(cls, step: OpenStep) -> CurrentStep:
        run = step.run
        progress = dict(step.progress)
        return cls(
            step.label,
            step.status,
            run.started_at,
            run.item,
            step.error,
            progress,
            run.child,
        )

    @classmethod
    def then(cls, step: OpenThen) -> CurrentStep:
        return cls(step.label, step.status, step.since, child=step.child)


@dataclass(frozen=True)
class SubprocessPicture:
    """Its diagram, and what stands beside it."""

    drawing: Drawing
    state: DiagramState
    steps: Sequence[CurrentStep]
    more_steps: int
    children: Sequence[ProcessInstance]
    trouble: Trouble | None = None
    more_trouble: int = 0


@dataclass(frozen=True)
class OpenedSubprocess:
    """What a page shows of the sub-process that its address names.

    Args:
        asked: what the address says.
        path: the processes from below the page's own to this one; none where it is no part of the page's process.
        moment: of its own past, where the page shows its past.
        picture: how it stands, or stood; None where it had not been started yet.
    """

    asked: str
    path: Sequence[ProcessInstance] = ()
    moment: PastMoment | None = None
    picture: SubprocessPicture | None = None

    @property
    def present(self) -> ProcessInstance | None:
        """It, as it is now."""
        return self.path[-1] if self.path else None

    @property
    def instance(self) -> ProcessInstance | None:
        """It, as it is shown."""
        return self.moment.then if self.moment is not None else self.present

    @property
    def above(self) -> Sequence[ProcessInstance]:
        """The processes between the page's own and this one."""
        return self.path[:-1]

    def for_whom(self, seen: frozenset[str] | None) -> OpenedSubprocess:
        """What a reader may see of it who sees these definitions; None for all."""
        names = {process.name for process in self.path}
        return self if seen is None or names <= seen else OpenedSubprocess(self.asked)

    @property
    def drawn(self) -> str:
        """What an open page says that it shows: another process or picture takes the place of the whole part."""
        if self.picture is None or self.instance is None:
            return f"{self.asked}."
        pending = ".pending" if self.picture.drawing.pending else ""
        return f"{self.asked}.{self.instance.definition.fingerprint}{pending}"


def opened_subprocess(
    page: ProcessInstance, moment: PastMoment | None, asked: str
) -> OpenedSubprocess:
    """Reads a sub-process, at any depth, for the page of a process that it is part of.

    Args:
        page: the process whose page it is, as it is now.
        moment: of its past, if that is shown.
        asked: the process id of the sub-process, as somebody wrote it.
    """
    asked = asked[:36]
    for one in path_to(page, asked)[-1:]:
        drawing_of(graph_of(one.definition), one.definition.fingerprint)  # kept
    with snapshot():
        path = path_to(page, asked)
        if not path:
            return OpenedSubprocess(asked)
        child = path[-1]
        found = OpenedSubprocess(str(child.pk), path)
        if moment is None:
            return replace(found, picture=_now(child))
        last = revision_at(child, moment.at)
        then = moment_of(child, last) if last else None
        return replace(found, moment=then, picture=_then(then)) if then else found


def path_to(page: ProcessInstance, asked: str) -> list[ProcessInstance]:
    """The processes from below that of the page to a sub-process; none where it is no part of it."""
    wanted = uuid_in(asked)
    rows = processes()
    path: list[ProcessInstance] = []
    while wanted is not None and wanted != page.pk and len(path) < DEEPEST:
        found = rows.filter(pk=wanted).first()
        if found is None:
            return []
        path.insert(0, found)
        wanted = found.parent_id
    return path if wanted == page.pk else []


def revision_at(instance: ProcessInstance, at: datetime) -> int:
    """The number of the last transition that a process had had by a moment; 0 if there was none.

    It halves what is left, along the index of transitions: a long history takes a few looks more.
    """
    if instance.started_at > at:
        return 0
    numbers = Checkpoint.objects.filter(instance=instance).order_by("-revision")
    found, low, high = 0, 0, instance.revision
    middle = high  # mostly it had ended by then
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


def _now(child: ProcessInstance) -> SubprocessPicture:
    definition = child.definition
    drawing = drawing_of(graph_of(definition), definition.fingerprint)
    states = step_states_of(child)
    steps, more = open_steps_of(child, states, STEPS)
    told = [CurrentStep.now(step) for step in steps]
    children = children_of(child, [step.child for step in told])
    state = painted(child, drawing.sketch, states)
    return SubprocessPicture(drawing, state, told, more, children, *trouble_of(child))


def _then(moment: PastMoment) -> SubprocessPicture:
    view = workflow_then(moment)
    steps = [CurrentStep.then(step) for step in view.open[:STEPS]]
    more = view.number_open - len(steps)
    return SubprocessPicture(view.drawing, view.state, steps, more, view.children)
