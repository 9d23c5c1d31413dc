"""Waiting visits and their kinds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from monitoring.queries.activity import open_visits
from orchestrator.models import StepKind, StepRun, StepStatus

WAITS = (StepStatus.WAITING, StepStatus.RETRYING)

OF_OTHERS = ("", StepKind.WAIT, StepKind.ASK)
"""Kinds of visits that an event or a person ends, and that may have a deadline; "" is a process manager's."""


@dataclass(frozen=True)
class WaitKind:
    """A kind of wait.

    Args:
        label: for people.
        icon: before the label.
        rows: the condition of waiting visits of this kind.
        visits: the kinds of visits that wait like this by design.
    """

    label: Any
    icon: str
    rows: Q
    visits: tuple[str, ...] = ()


def _by_design(label: Any, icon: str, *visits: str) -> WaitKind:
    rows = Q(status=StepStatus.WAITING, blocked="", kind__in=visits)
    return WaitKind(label, icon, rows, visits)


KINDS = {
    "event": _by_design(_("an event"), "wait", "", StepKind.WAIT),
    "decision": _by_design(_("a decision"), "ask", StepKind.ASK),
    "subprocess": _by_design(_("a sub-process"), "run", StepKind.RUN),
    "elements": _by_design(_("the elements of a map"), "map", StepKind.MAP),
    "timer": _by_design(_("time to pass"), "sleep", StepKind.SLEEP),
    "retry": WaitKind(_("another attempt"), "retrying", Q(status=StepStatus.RETRYING)),
    "step": WaitKind(
        _("another step"),
        "step",
        Q(status=StepStatus.WAITING)
        & (~Q(blocked="") | Q(kind__in=[StepKind.STEP, StepKind.UNDO])),
    ),
}
"""All kinds by their name in an address; each waiting visit is of exactly one."""

_OF_VISITS = {visit: name for name, kind in KINDS.items() for visit in kind.visits}


def all_waits() -> QuerySet[StepRun]:
    """Return all open visits that wait.

    Joins are excluded, since they wait for visits of their own process. Elements are excluded, since their map waits.
    """
    return open_visits().filter(status__in=WAITS)


def waits_of_processes(processes: Sequence[UUID]) -> QuerySet[StepRun]:
    """Return the open visits of some processes that wait.

    The condition avoids the index of all waits: PostgreSQL would scan the whole index.
    """
    rows = open_visits().alias(how=Coalesce("status", "status"))
    return rows.filter(instance__in=processes, how__in=WAITS)


def wait_kind(run: StepRun) -> str:
    """Return the name of the kind of a waiting visit."""
    if run.status == StepStatus.RETRYING:
        return "retry"
    return "step" if run.blocked else _OF_VISITS.get(run.kind, "step")
