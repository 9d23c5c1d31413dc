"""The outcomes of retries and cancellations, read for many processes together: their effect comes later.

A retry resolves the incident at once. Its outcome is known when the retried work has ended or has failed again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from orchestrator.engine.operations.base import Tried
from orchestrator.models import (
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
    Verdict,
)
from orchestrator.text import Text, unpack_text

UNDER_WAY = IssuedCommand.UNDER_WAY
STILL_FAILED = Text("it is still failed")


def retry_outcomes(tried: Sequence[Tried]) -> dict[Any, str | None]:
    """Return whether processes have left the failed state since their retry."""
    # In this order: work that has ended before the first read has stored its failure before the second.
    retried, at_work = _at_work(tried)
    failures = _failures_since(tried)
    processes = _processes(tried)
    found: dict[Any, str | None] = {}
    for one in tried:
        process = processes.get(one.target)
        if process is None or process.finished_at is not None:
            found[one.target] = ""
        elif one.target in failures:
            found[one.target] = failures[one.target]
        elif one.target in at_work or process.status == Status.RETRYING:
            found[one.target] = None
        elif process.status == Status.FAILED:
            found[one.target] = STILL_FAILED
        elif one.target in retried:
            found[one.target] = ""
        else:  # the failure had no incident: the retry is the newest change until the process moves
            moved = process.revision > one.revision + 1
            found[one.target] = "" if moved else None
    return found


def cancel_outcomes(tried: Sequence[Tried]) -> dict[Any, str | None]:
    """Return whether processes have ended since they were cancelled; a workflow may undo finished steps first."""
    live = {pk for pk, one in _processes(tried).items() if one.finished_at is None}
    failures = _failures_since(tried)
    ended = {one.target: "" for one in tried if one.target not in live}
    return {**{pk: failures.get(pk) for pk in live}, **ended}


def _processes(tried: Sequence[Tried]) -> dict[UUID, ProcessInstance]:
    rows = ProcessInstance.objects.only("status", "revision", "finished_at")
    return rows.in_bulk([one.target for one in tried])


def _failures_since(tried: Sequence[Tried]) -> dict[UUID, str]:
    """The newest open incident of each process that was opened after the action."""
    moments = {one.target: one.at for one in tried}
    rows = Incident.objects.open().filter(instance__in=list(moments)).order_by("pk")
    return {
        pk: unpack_text(message, text)
        for pk, opened, message, text in rows.values_list(
            "instance_id", "opened_at", "message", "text"
        )
        if opened > moments[pk]
    }


def _at_work(tried: Sequence[Tried]) -> tuple[set[UUID], set[UUID]]:
    """The processes whose retried work is known, and those of them whose retried work has not ended.

    The incidents that a retry has resolved, at its own moment, name the steps, commands and events of the retry.
    """
    moments = {one.target: one.at for one in tried}
    resolved = Incident.objects.filter(
        instance__in=list(moments), resolved_at__gte=min(moments.values())
    )
    parts = defaultdict[str, dict[Any, UUID]](dict)
    retried: set[UUID] = set()
    names = ("step_run_id", "command_id", "event_id")
    for pk, at, *keys in resolved.values_list("instance_id", "resolved_at", *names):
        if at == moments[pk]:
            retried.add(pk)
            for name, key in zip(names, keys, strict=True):
                if key is not None:
                    parts[name][key] = pk
    return retried, {
        parts[name][key]
        for name, rows in zip(names, _open_work(), strict=True)
        if parts[name]
        for key in rows.filter(pk__in=list(parts[name])).values_list("pk", flat=True)
    }


def _open_work() -> tuple[QuerySet[Any], ...]:
    """The steps, the commands and the events that workers have not finished."""
    working = Q(status__in=[StepStatus.READY, StepStatus.RUNNING, StepStatus.RETRYING])
    for_child = Q(status=StepStatus.WAITING, child__isnull=False)
    late = Q(kind="") & ~Q(error="")
    return (
        StepRun.objects.filter(working | for_child | late, finished_at=None),
        IssuedCommand.objects.filter(status__in=UNDER_WAY),
        InboxEvent.objects.filter(verdict=Verdict.RECEIVED),
    )
