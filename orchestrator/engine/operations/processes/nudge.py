"""Nudge: wakes a stalled process, and gives its sleeping work to the workers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.process import Circumstances, ProcessOperation
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.table import Table
from orchestrator.engine.sql.tables import commands, events, step_runs
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
    Verdict,
)
from orchestrator.text import Text

WORK = (StepStatus.READY, StepStatus.RUNNING, StepStatus.RETRYING)
"""The statuses of visits that a worker would run, if it woke."""


class SleepingWork(NamedTuple):
    """Unfinished work of some processes without a time at which a worker wakes for it."""

    visits: QuerySet[StepRun]
    commands: QuerySet[IssuedCommand]
    events: QuerySet[InboxEvent]


def sleeping_work(processes: Collection[UUID]) -> SleepingWork:
    """Return the work of processes that no worker will claim. A paused process has none: its work has time left."""
    unclaimed = {"wake_at": None, "owner": ""}
    visits = StepRun.objects.filter(
        instance__in=processes,
        finished_at=None,
        status__in=WORK,
        blocked="",
        remaining=None,
        **unclaimed,
    )
    return SleepingWork(
        visits.order_by("pk"),
        IssuedCommand.objects.filter(
            instance__in=processes, status__in=IssuedCommand.UNDER_WAY, **unclaimed
        ).order_by("pk"),
        InboxEvent.objects.filter(
            process__in=processes, verdict=Verdict.RECEIVED, remaining=None, **unclaimed
        ).order_by("pk"),
    )


class NudgeProcess(ProcessOperation):
    """Wakes a process that is stalled: its status says it continues, but no worker has work of it.

    Sleeping work becomes due, the status is computed anew, and the queues are woken. Finished work stays as it is.
    """

    name = "nudge"
    label = _("Nudge")
    done = _("Nudged: the workers look at it again.")
    may = _("Can nudge a process that stands still")
    text = _(
        "What nothing would run is given to the workers, and how the process stands is worked out anew. Nothing that "
        "was done is done again."
    )
    icon = "bolt"
    rank = 85

    def obstacle(self, process: Circumstances) -> str:
        if process.paused:
            return Text("The process is paused: resume it first")
        if process.instance.status == Status.FAILED:
            return Text("It has failed: retry it")
        waits = process.instance.status == Status.WAITING
        return Text("It waits as designed") if waits else ""

    def effect(self, press: Press) -> dict[str, Any]:
        process, now = press.process, press.now
        found = sleeping_work([process.pk])
        change = ProcessChange(process, press.cause, now)
        woken = []
        for name, table, rows in (
            ("steps", step_runs, found.visits),
            ("commands", commands, found.commands),
            ("events", events, found.events),
        ):
            work = list(rows)
            change.mark(*(_wake(table, one, now) for one in work))
            change.to_wake |= {one.queue for one in work}
            woken += [f"{name}: {len(work)}"] if work else []
        if not woken:
            _check_stands_still(process, now)
        change.look_again()
        change.to_wake |= _queues(process)
        change.write()
        return {"woken": woken}


nudge = register(NudgeProcess())


def _wake(table: Table[Any], work: Any, now: datetime) -> Any:
    state = "verdict" if isinstance(work, InboxEvent) else "status"
    stands = {state: str(getattr(work, state))}
    same = {"id": work.pk, "wake_at": None, "owner": "", **stands}
    return table.update({"wake_at": now}, same)


def _check_stands_still(process: ProcessInstance, now: datetime) -> None:
    """Checks that the process does not continue by itself.

    Raises:
        OperationRefused: a worker has claimed its work, or will wake for it at a known time.
    """
    for rows in _all_work(process):
        waking = rows.filter(wake_at__isnull=False)
        if waking.exclude(owner="").exists():
            raise OperationRefused(Text("A worker is at it just now"))
        later = waking.filter(wake_at__gt=now).order_by("wake_at").first()
        if later is not None:
            at = f"{later.wake_at:%Y-%m-%d %H:%M:%S} UTC"
            raise OperationRefused("It goes on by itself at %(time)s", at)


def _all_work(process: ProcessInstance) -> Iterator[QuerySet[Any]]:
    yield process.step_runs.filter(finished_at=None)
    yield process.commands.all()
    yield process.events.all()


def _queues(process: ProcessInstance) -> set[str]:
    """The queues of its work that has a time."""
    found: set[str] = set()
    for rows in _all_work(process):
        due = rows.filter(wake_at__isnull=False).order_by()
        found |= set(due.values_list("queue", flat=True).distinct())
    return found
