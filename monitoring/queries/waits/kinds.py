"""What waits, and for what kind of thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from monitoring.queries.doing import open_visits
from orchestrator.models import StepKind, StepRun, StepStatus

WAITS = (StepStatus.WAITING, StepStatus.RETRYING)

OF_OTHERS = ("", StepKind.WAIT, StepKind.ASK)
"""Visits that somebody else ends, and that may have a deadline; those of process managers have no kind."""


@dataclass(frozen=True)
class WaitKind:
    """What a visit waits for.

    Args:
        label: what that is called.
        icon: what stands before it.
        rows: which of the visits that wait do so for that.
    """

    label: Any
    icon: str
    rows: Q


_BY_DESIGN = Q(status=StepStatus.WAITING, blocked="")

KINDS = {
    "event": WaitKind(
        _("an event"), "wait", _BY_DESIGN & Q(kind__in=["", StepKind.WAIT])
    ),
    "decision": WaitKind(_("a decision"), "ask", _BY_DESIGN & Q(kind=StepKind.ASK)),
    "subprocess": WaitKind(
        _("a sub-process"), "run", _BY_DESIGN & Q(kind=StepKind.RUN)
    ),
    "elements": WaitKind(
        _("the elements of a map"), "map", _BY_DESIGN & Q(kind=StepKind.MAP)
    ),
    "timer": WaitKind(_("time to pass"), "sleep", _BY_DESIGN & Q(kind=StepKind.SLEEP)),
    "retry": WaitKind(_("another attempt"), "retrying", Q(status=StepStatus.RETRYING)),
    "step": WaitKind(
        _("another step"),
        "step",
        Q(status=StepStatus.WAITING)
        & (~Q(blocked="") | Q(kind__in=[StepKind.STEP, StepKind.UNDO])),
    ),
}
"""All of them, by the name that an address has; each visit that waits is of exactly one."""

_OF_VISITS = {
    "": "event",
    StepKind.WAIT: "event",
    StepKind.ASK: "decision",
    StepKind.RUN: "subprocess",
    StepKind.MAP: "elements",
    StepKind.SLEEP: "timer",
}


def all_waits() -> QuerySet[StepRun]:
    """Every open visit that waits.

    Not a join, which waits for visits of its own process that are here themselves; and not the elements of a map, for
    all of which the map is here.
    """
    return open_visits().filter(status__in=WAITS)


def waits_of(processes: Sequence[UUID]) -> QuerySet[StepRun]:
    """The same of some processes.

    In words that the index of all waits does not have: PostgreSQL takes that for short, and goes through all of it
    instead of the open visits of each process.
    """
    rows = open_visits().alias(how=Coalesce("status", "status"))
    return rows.filter(instance__in=processes, how__in=WAITS)


def kind_of(run: StepRun) -> str:
    """The name of what a visit waits for."""
    if run.status == StepStatus.RETRYING:
        return "retry"
    return "step" if run.blocked else _OF_VISITS.get(run.kind, "step")
