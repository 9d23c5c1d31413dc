"""Whether the work of a measurement was really done: a figure counts only when the rows say so."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from django.db import connection
from django.db.models import Exists, F, OuterRef

from bench.game import BenchFailed
from orchestrator.engine.invariants import violations
from orchestrator.models import (
    Checkpoint,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)

MOST_PROCESSES = 50_000
"""In a database with more, all invariants would take longer than all games; the rows of the games are checked."""
SHOWN = 3

FUNCTIONS = (StepKind.STEP, StepKind.ITEM)
"""Kinds of visits that call a function."""


def completed(name: str, processes: int, visits: int) -> None:
    """Each process has completed, each step was visited once, at the first attempt, and each end has its checkpoint.

    Raises:
        BenchFailed: saying what is wrong.
    """
    rows = ProcessInstance.objects.filter(name=name)
    statuses = Counter(rows.values_list("status", flat=True))
    equal(f"{name}: processes by status", dict(statuses), {Status.COMPLETED: processes})
    called = StepRun.objects.filter(instance__name=name, kind__in=FUNCTIONS)
    found = Counter(called.values_list("status", "attempt"))
    expected = {(StepStatus.DONE, 1): visits}
    equal(f"{name}: visits by status and attempt", dict(found), expected)
    checkpoints(name)
    invariants()


def checkpoints(name: str) -> None:
    """Each visit that was left has the checkpoint of the transition that left it, and each process that of its last.

    Raises:
        BenchFailed: saying how many have not.
    """
    left = Checkpoint.objects.filter(
        instance=OuterRef("instance"), revision=OuterRef("left")
    )
    visits = StepRun.objects.filter(instance__name=name, left__isnull=False)
    last = Checkpoint.objects.filter(
        instance=OuterRef("pk"), revision=F("instance__revision")
    )
    processes = ProcessInstance.objects.filter(name=name, revision__gt=0)
    without = {
        "visits": visits.exclude(Exists(left)).count(),
        "processes": processes.exclude(Exists(last)).count(),
    }
    equal(f"{name}: rows without their checkpoint", without, dict.fromkeys(without, 0))


def invariants() -> None:
    """What must always hold does, as `check_invariants` asks.

    Raises:
        BenchFailed: with the first violations.
    """
    if ProcessInstance.objects.all()[MOST_PROCESSES : MOST_PROCESSES + 1].exists():
        return
    if connection.in_atomic_block:
        raise BenchFailed("a measurement does not run inside a transaction")
    found = violations()
    if found:
        shown = "; ".join(islice(found, SHOWN))
        raise BenchFailed(f"{len(found)} violations of the invariants: {shown}")


def equal(what: str, found: object, expected: object) -> None:
    """Compares what was stored with what had to be.

    Raises:
        BenchFailed: they differ.
    """
    if found != expected:
        raise BenchFailed(f"{what}: {found}, not {expected}. The figure is void.")
