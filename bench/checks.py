"""Checks that the work of a measurement was done: a figure counts only when the rows say so."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from django.db import connection
from django.db.models import Count, Exists, F, OuterRef, Sum

from bench.game import BenchFailed
from orchestrator.engine.invariants import violations
from orchestrator.models import (
    Checkpoint,
    CommandStatus,
    Delivery,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
    Verdict,
)

MOST_PROCESSES = 50_000
"""In a larger database all invariants would take longer than all games: then only the games' rows are checked."""
SHOWN = 3

FUNCTIONS = (StepKind.STEP, StepKind.ITEM)
"""Kinds of visits that call a function."""


def check_ended(name: str, processes: int) -> None:
    """Check that each process has completed.

    Raises:
        BenchFailed: one has not.
    """
    rows = ProcessInstance.objects.filter(name=name)
    statuses = Counter(rows.values_list("status", flat=True))
    check_equal(
        f"{name}: processes by status", dict(statuses), {Status.COMPLETED: processes}
    )


def check_completed(name: str, processes: int, visits: int) -> None:
    """Check that each process has completed, at the first attempt of each step, and each end has its checkpoint.

    Raises:
        BenchFailed: one has not.
    """
    check_ended(name, processes)
    called = StepRun.objects.filter(instance__name=name, kind__in=FUNCTIONS)
    found = Counter(called.values_list("status", "attempt"))
    expected = {(StepStatus.DONE, 1): visits}
    check_equal(f"{name}: visits by status and attempt", dict(found), expected)
    check_checkpoints(name)
    check_invariants()


def check_checkpoints(name: str) -> None:
    """Check that each visit has the checkpoint of the transition that left it, and each process that of its last one.

    Raises:
        BenchFailed: some have not.
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
    check_equal(
        f"{name}: rows without their checkpoint", without, dict.fromkeys(without, 0)
    )


def check_invariants() -> None:
    """Check all invariants, as `check_invariants` does.

    Raises:
        BenchFailed: some do not hold; the message has the first violations.
    """
    if ProcessInstance.objects.all()[MOST_PROCESSES : MOST_PROCESSES + 1].exists():
        return
    if connection.in_atomic_block:
        raise BenchFailed("a measurement does not run inside a transaction")
    found = violations()
    if found:
        shown = "; ".join(islice(found, SHOWN))
        raise BenchFailed(f"{len(found)} violations of the invariants: {shown}")


def check_equal(what: str, found: object, expected: object) -> None:
    """Compare what was stored with what had to be.

    Raises:
        BenchFailed: they differ.
    """
    if found != expected:
        raise BenchFailed(f"{what}: {found}, not {expected}. The figure is void.")


def check_moved(name: str, source: str, sent: int, processes: int) -> None:
    """Check that each event has moved a process, and the processes have made as many transitions.

    Raises:
        BenchFailed: one has not.
    """
    received = InboxEvent.objects.filter(source=source)
    verdicts = Counter(received.values_list("verdict", flat=True))
    check_equal(f"{name}: events by verdict", dict(verdicts), {Verdict.MOVED: sent})
    rows = ProcessInstance.objects.filter(name=name)
    transitions = rows.aggregate(sum=Sum("revision"), number=Count("pk"))
    made = {"sum": sent + processes, "number": processes}
    check_equal(f"{name}: transitions and processes", transitions, made)
    causes = Checkpoint.objects.filter(instance__name=name, revision__gt=1)
    check_equal(f"{name}: checkpoints after the first", causes.count(), sent)
    visits = StepRun.objects.filter(instance__name=name)
    statuses = Counter(visits.values_list("status", flat=True))
    walked = {StepStatus.DONE: sent + processes, StepStatus.WAITING: processes}
    check_equal(f"{name}: visits by status", dict(statuses), walked)
    check_checkpoints(name)


def check_received(source: str, sent: int) -> None:
    """Check that each event is stored and has no verdict.

    Raises:
        BenchFailed: one is missing, or has a verdict.
    """
    rows = InboxEvent.objects.filter(source=source)
    verdicts = Counter(rows.values_list("verdict", flat=True))
    check_equal("events by verdict", dict(verdicts), {Verdict.RECEIVED: sent})
    check_invariants()


def check_carried_out(name: str, commands: int) -> None:
    """Check that each command was carried out once.

    Raises:
        BenchFailed: one was not.
    """
    rows = IssuedCommand.objects.filter(instance__name=name)
    found = Counter(rows.values_list("status", "delivery", "attempt"))
    attempts = {Delivery.IN_TRANSACTION: 0, Delivery.AFTER_COMMIT: 1}
    each = {
        (CommandStatus.DONE, way, attempt): commands // len(attempts)
        for way, attempt in attempts.items()
    }
    check_equal(f"{name}: commands", dict(found), each if commands else {})
