"""A process as it stood at one of its checkpoints, told from the rows that are kept: checkpoints, visits, causes.

What no row keeps cannot be told: whether a worker had already taken a step that was ready (both are at work here), and
how far a step had come that reports its progress. Attempts after the first that fails leave no row of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from monitoring.queries.instance.versions import Versions, versions_of
from orchestrator.models import (
    CauseKind,
    Checkpoint,
    Definition,
    OperatorAction,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
)
from orchestrator.models.process_instance import ENDED

VISITS = 500
"""Visits of a process manager that are looked at, the newest of the moment."""

NEWEST = ("-item", "-started_at", "-pk")
"""The order in which an index has the visits of a process that are no elements of maps."""

LOOKED_BACK = 500
"""Checkpoints that are looked at for what is in trouble at a moment."""

TROUBLED = (Status.RETRYING, Status.FAILED)
HELD_UP = (*TROUBLED, Status.PAUSED)


class KnownFailure(NamedTuple):
    """How a visit stood that had failed: "retrying" or "failed", and how many of its failures are known."""

    status: str
    attempt: int


@dataclass(frozen=True)
class PastMoment:
    """A process just after one of its transitions.

    Args:
        checkpoint: what the transition left.
        present: the process now.
        then: the process then: status, step, data and revision of that moment.
        trouble: the visits that had failed and were still open, by their keys.
        resumed: from and to which revisions the process had been resumed until then, and will be: (to, at).
        versions: those that the process has been on.
    """

    checkpoint: Checkpoint
    present: ProcessInstance
    then: ProcessInstance
    trouble: Mapping[int, KnownFailure] = field(default_factory=dict)
    resumed: Sequence[tuple[int, int]] = ()
    versions: Versions | None = None

    @property
    def definition(self) -> Definition:
        """The stored definition that the process was on."""
        return self.then.definition

    def name_then(self, name: str) -> str:
        """The name that a step, which is stored under this one now, had then."""
        return self.versions.name_at(name, self.revision) if self.versions else name

    @property
    def revision(self) -> int:
        return self.checkpoint.revision

    @property
    def at(self) -> datetime:
        return self.checkpoint.at

    @property
    def newer(self) -> int:
        """Transitions that came after it."""
        return self.present.revision - self.revision

    @property
    def after(self) -> int:
        """The number of the transition after it."""
        return self.revision + 1

    @property
    def is_last(self) -> bool:
        return self.newer == 0

    def superseded_at(self, left: int) -> int:
        """The revision at which a visit that was left at a revision was given up by a resumption or a migration."""
        switches = self.versions.switches if self.versions else ()
        given_up = [*self.resumed, *((0, switch.revision) for switch in switches)]
        in_turn = sorted(given_up, key=lambda pair: pair[1])
        return next((at for to, at in in_turn if to < left <= at), left)


def moment_of(instance: ProcessInstance, revision: int) -> PastMoment | None:
    """A process as it stood after the transition of that number; None if there was none.

    Args:
        instance: the process as it is now.
        revision: of the checkpoint.
    """
    checkpoint = instance.checkpoints.filter(revision=revision).first()
    if checkpoint is None:
        return None
    versions = versions_of(instance)
    then = instance_then(instance, checkpoint)
    then.definition = versions.definition_at(revision)
    back: list[Checkpoint] = []
    if checkpoint.status in HELD_UP:
        rows = instance.checkpoints.filter(revision__lte=revision).defer("data")
        back = list(rows.order_by("-revision")[:LOOKED_BACK])
    return PastMoment(
        checkpoint,
        instance,
        then,
        trouble_of(back),
        resumptions_of(instance),
        versions,
    )


def instance_then(instance: ProcessInstance, checkpoint: Checkpoint) -> ProcessInstance:
    """The process as a checkpoint says it was; not to be saved."""
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


def trouble_of(back: Iterable[Checkpoint]) -> dict[int, KnownFailure]:
    """The visits that had failed, as the causes of checkpoints tell it; some may have been settled since.

    Args:
        back: a process's checkpoints, newest first, of which those are read that lie in one stretch of trouble.
    """
    stretch: list[Checkpoint] = []
    for checkpoint in back:
        if checkpoint.status not in HELD_UP:
            break
        stretch.append(checkpoint)
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
            found.clear()  # what had failed is tried again
        if checkpoint.status != Status.PAUSED:
            before = checkpoint.status
    return found


def resumptions_of(instance: ProcessInstance) -> list[tuple[int, int]]:
    """To which checkpoints the process was resumed, and at which revisions, the first one first."""
    rows = OperatorAction.objects.filter(
        instance=instance, action="resume", result=OperatorAction.Result.DONE
    )
    found = (row["after"] for row in rows.values("after"))
    pairs = [(after["resumed_from"], after["revision"]) for after in found]
    return sorted(pairs, key=lambda pair: pair[1])


def newest_runs(instance: ProcessInstance) -> list[StepRun]:
    """The newest visits of a process manager, the oldest first."""
    rows = instance.step_runs.filter(item=None)
    return list(rows.order_by(*NEWEST)[:VISITS])[::-1]


def all_of(newest: list[StepRun]) -> list[StepRun] | None:
    """All visits of a process manager, if its newest are all."""
    return newest if len(newest) < VISITS else None


def runs_then(moment: PastMoment) -> list[StepRun]:
    """The newest visits of a process manager as they were at a moment, the oldest first."""
    rows = moment.present.step_runs.filter(item=None, started_at__lte=moment.at)
    return visits_then(list(rows.order_by(*NEWEST)[:VISITS])[::-1], moment)


def visits_then(runs: list[StepRun], moment: PastMoment) -> list[StepRun]:
    """Visits as they were: open if they ended later, and without those of transitions at the very same time."""
    step = moment.then.step
    while runs and runs[-1].node != step and runs[-1].started_at == moment.at:
        runs = runs[:-1]
    ended = moment.then.finished_at is not None
    for place, run in enumerate(runs):
        last = place == len(runs) - 1 and not ended
        later = run.finished_at is None or run.finished_at > moment.at
        if run.finished_at is not None and (later or last):
            run.finished_at, run.status = None, StepStatus.WAITING
    return runs
