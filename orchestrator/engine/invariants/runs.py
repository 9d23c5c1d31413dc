"""What the checks read of one workflow: its step runs without their values, and what caused each checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from orchestrator.models import (
    Blocked,
    Cause,
    CauseKind,
    Checkpoint,
    OperatorAction,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)

CHUNK = 500
Visit = tuple[str, int]
"""A node and which visit of it."""


class Run(NamedTuple):
    """The columns of a step run that say how it stands."""

    pk: int
    node: str
    kind: str
    visit: int
    item: int | None
    round: int
    redo: bool
    status: str
    entered: int
    left: int | None
    arrived: int
    taken: int
    expected: int | None
    progress: Any
    blocked: str
    wake_at: Any
    child_id: UUID | None
    finished_at: Any

    @property
    def open(self) -> bool:
        return self.finished_at is None

    @property
    def settled_at(self) -> tuple[int, int]:
        """What orders runs by when they were settled."""
        return (self.left or 0, self.pk)


def known(cause: str) -> Cause | None:
    """A checkpoint's cause; None if it is of no known kind."""
    try:
        return Cause.parse(cause)
    except ValueError:
        return None


class Story:
    """One workflow as it is stored."""

    def __init__(self, instance: ProcessInstance) -> None:
        self.instance = instance
        rows = StepRun.objects.filter(instance=instance.pk).order_by("round", "pk")
        self.runs = [Run(*row) for row in rows.values_list(*Run._fields)]
        points = Checkpoint.objects.filter(instance=instance.pk).order_by("revision")
        causes = points.values_list("revision", "cause")
        self.causes: Mapping[int, Cause | None] = {
            at: known(text) for at, text in causes
        }
        undos = [run.entered for run in self.runs if run.kind == StepKind.UNDO]
        if any(run.blocked == Blocked.UNDOING for run in self.runs):
            undos.append(instance.revision)  # nothing to undo until that run has ended
        self.undone_at = min(undos, default=instance.revision + 1)
        """The revision at which it began to be undone; nothing follows from what was settled then or later."""

    @cached_property
    def visits(self) -> dict[Visit, Run]:
        """The run that counts for each visit: not what was superseded when it was resumed, nor what was only redone."""
        return {
            (run.node, run.visit): run
            for run in self.runs
            if run.kind not in (StepKind.ITEM, StepKind.UNDO)
            and run.status != StepStatus.SUPERSEDED
            and not run.redo
        }

    @cached_property
    def resumed_at(self) -> set[int]:
        """The revisions at which operators set it back."""
        done = OperatorAction.objects.filter(
            instance=self.instance.pk, action="resume", result="done"
        )
        keys = done.values_list("key", flat=True)
        causes = {Cause.of(CauseKind.OPERATOR, key) for key in keys}
        return {number for number, cause in self.causes.items() if cause in causes}

    def values(self, runs: Iterable[Run]) -> dict[int, StepRun]:
        """The stored rows of some runs, with their results."""
        keys, found = [run.pk for run in runs], dict[int, StepRun]()
        for begin in range(0, len(keys), CHUNK):
            found |= StepRun.objects.in_bulk(keys[begin : begin + CHUNK])
        return found
