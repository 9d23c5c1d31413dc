"""A process at a revision: now, or at one of its checkpoints, as stored rows tell it.

No row tells whether a worker had claimed a ready step: both are shown as running. No row has the earlier progress of a
step, nor the failed attempts after the first one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

from django.utils import timezone

from monitoring.base.graphs import labels_of, stored_graph
from monitoring.diagrams import Drawing, drawing_of
from monitoring.process.revision.transitions import Transitions
from monitoring.process.revision.versions import Versions
from orchestrator.definition.graph import Graph
from orchestrator.models import (
    CauseKind,
    Checkpoint,
    Definition,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
)
from orchestrator.models.process_instance import ENDED

VISITS = 500
"""The maximum number of visits of a process manager that the page reads, the newest of the moment."""

NEWEST = ("-item", "-started_at", "-pk")
"""The order of an index over visits that are not elements of maps."""

LOOKED_BACK = 500
"""The maximum number of checkpoints that the page reads to find the failures that were open at a moment."""

HELD_UP = (Status.RETRYING, Status.FAILED, Status.PAUSED)


class KnownFailure(NamedTuple):
    """The status of a failed visit ("retrying" or "failed"), and the number of its known failures."""

    status: str
    attempt: int


@dataclass(frozen=True)
class ProcessMoment:
    """A process just after one of its transitions: the newest one (now), or an earlier one.

    It reads each part once, on first use.

    Args:
        present: the process now.
        transitions: all transitions of the process.
        checkpoint: the checkpoint of the transition; None for now.
    """

    present: ProcessInstance
    transitions: Transitions
    checkpoint: Checkpoint | None = None

    @property
    def is_past(self) -> bool:
        """Whether the reader asked for a transition, which may be the newest one."""
        return self.checkpoint is not None

    @cached_property
    def now(self) -> ProcessMoment:
        """The same process now."""
        return ProcessMoment(self.present, self.transitions) if self.is_past else self

    @property
    def versions(self) -> Versions:
        """The versions that the process has been on."""
        return self.transitions.versions

    @cached_property
    def instance(self) -> ProcessInstance:
        """The process with the status, step, data and revision of the moment; never save one of the past."""
        if self.checkpoint is None:
            return self.present
        then = process_at(self.checkpoint, self.present)
        then.definition = self.versions.definition_at(then.revision)
        return then

    @property
    def definition(self) -> Definition:
        """The stored definition of the process at the moment."""
        return self.instance.definition

    @property
    def is_workflow(self) -> bool:
        return self.present.definition.is_workflow

    @property
    def graph(self) -> Graph:
        return stored_graph(self.definition)

    @cached_property
    def drawing(self) -> Drawing:
        """The picture of the definition."""
        return stored_drawing(self.definition)

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The labels of the steps of all versions; the version of the moment wins over others."""
        if self.definition.pk == self.present.definition.pk:
            return self.versions.labels
        return {**self.versions.labels, **labels_of(self.definition)}

    @property
    def step_label(self) -> str:
        """The label of a process manager's step."""
        return self.labels.get(self.instance.step, self.instance.step)

    @property
    def revision(self) -> int:
        return self.instance.revision

    @property
    def at(self) -> datetime | None:
        """The time of its transition; None for now."""
        return self.checkpoint.at if self.checkpoint is not None else None

    @cached_property
    def until(self) -> datetime:
        """The time of the moment, also of now: durations of open visits end here."""
        return self.at or timezone.now()

    @property
    def newer(self) -> int:
        """The number of later transitions."""
        return self.present.revision - self.revision

    @property
    def is_newest(self) -> bool:
        return self.newer == 0

    @property
    def earlier(self) -> int:
        """The number of the transition before it; 0 if there is none."""
        return self.revision - 1

    @property
    def later(self) -> int:
        """The number of the transition after it; 0 if that is now."""
        return self.revision + 1 if self.newer > 1 else 0

    @cached_property
    def taken(self) -> set[str]:
        """The ids of the edges that the process had taken by then."""
        return self.transitions.taken(self.revision)

    @cached_property
    def visits(self) -> list[StepRun]:
        """The newest visits of a process manager, the oldest first."""
        rows = self.present.step_runs.filter(item=None)
        if self.checkpoint is None:
            return list(rows.order_by(*NEWEST)[:VISITS])[::-1]
        rows = rows.filter(started_at__lte=self.checkpoint.at)
        newest = list(rows.order_by(*NEWEST)[:VISITS])[::-1]
        return visits_then(newest, self.instance)

    @property
    def has_all_visits(self) -> bool:
        """Whether `visits` has all visits until the moment."""
        return len(self.visits) < VISITS

    @property
    def open_visit(self) -> StepRun | None:
        """The open visit of a process manager, if there is one."""
        runs = reversed(self.visits)
        return next((run for run in runs if run.finished_at is None), None)

    @cached_property
    def trouble(self) -> Mapping[int, KnownFailure]:
        """The failed visits that were still open, by key; empty for now, since the rows have them."""
        if self.checkpoint is None or self.checkpoint.status not in HELD_UP:
            return {}
        rows = self.present.checkpoints.filter(revision__lte=self.revision)
        return known_failures(rows.defer("data").order_by("-revision")[:LOOKED_BACK])

    def name_then(self, name: str) -> str:
        """Return the name that a step had at the moment, by its name now."""
        return self.versions.name_at(name, self.revision)

    def superseded_at(self, left: int) -> int:
        """Return the revision at which a resumption or migration superseded a visit that ended at `left`."""
        switches = ((0, switch.revision) for switch in self.versions.switches)
        given_up = [*self.transitions.resumed, *switches]
        in_turn = sorted(given_up, key=lambda pair: pair[1])
        return next((at for to, at in in_turn if to < left <= at), left)


def stored_drawing(definition: Definition) -> Drawing:
    """Return the picture of a definition's row, which may have its graph deferred."""
    return drawing_of(stored_graph(definition), definition.fingerprint)


def process_moment(
    instance: ProcessInstance, revision: int | None = None
) -> ProcessMoment:
    """Return a process just after a transition; now if there was no transition of that number.

    Args:
        instance: the process as it is now.
        revision: the number of the transition; None for now.
    """
    found = None
    if revision is not None:
        found = instance.checkpoints.filter(revision=revision).first()
    return ProcessMoment(instance, Transitions(instance), found)


def process_at(checkpoint: Checkpoint, instance: ProcessInstance) -> ProcessInstance:
    """Return a copy of a process in the state of a checkpoint."""
    then = copy(instance)
    then.status, then.revision = checkpoint.status, checkpoint.revision
    then.changed_at = checkpoint.at
    ended = checkpoint.status in ENDED
    then.finished_at = checkpoint.at if ended else None
    paused = checkpoint.status == Status.PAUSED
    then.paused_at = (instance.paused_at or checkpoint.at) if paused else None
    if not instance.definition.is_workflow:  # whose data is its input
        then.data, then.step = checkpoint.data, next(iter(checkpoint.steps), "")
    return then


def known_failures(back: Iterable[Checkpoint]) -> dict[int, KnownFailure]:
    """Find the failed visits from the causes of checkpoints; some of them may have been settled meanwhile.

    Args:
        back: checkpoints, the newest first; it stops at the first one without trouble.
    """
    stretch = list(takewhile(lambda one: one.status in HELD_UP, back))
    found: dict[int, KnownFailure] = {}
    known: Counter[int] = Counter()
    before = ""
    for checkpoint in reversed(stretch):
        cause, run = checkpoint.moved_by, checkpoint.step_run
        if cause is not None and cause.kind == CauseKind.STEP_FAILED and run:
            known[run] += 1
            hopeless = checkpoint.status == Status.FAILED
            status = StepStatus.FAILED if hopeless else StepStatus.RETRYING
            found[run] = KnownFailure(status, known[run])
        elif before == Status.FAILED and checkpoint.status == Status.RETRYING:
            found.clear()  # the engine retries the failed visits
        if checkpoint.status != Status.PAUSED:
            before = checkpoint.status
    return found


def visits_then(runs: list[StepRun], then: ProcessInstance) -> list[StepRun]:
    """Turn visits back: later ends become open, and later visits of the same instant are left out."""
    at = then.changed_at
    while runs and runs[-1].node != then.step and runs[-1].started_at == at:
        runs = runs[:-1]
    for run in runs:
        last = run is runs[-1] and then.finished_at is None
        if run.finished_at is not None and (last or run.finished_at > at):
            run.finished_at, run.status = None, StepStatus.WAITING
    return runs
