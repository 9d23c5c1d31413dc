"""What the list of waits is narrowed to, and in which order it stands: the least time left, then the longest wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.queries.among import among
from monitoring.queries.counts import MANY
from monitoring.queries.doing import LATE
from monitoring.queries.instances.filters import Filters
from monitoring.queries.lists import Search
from monitoring.queries.looks import bounded
from monitoring.queries.waits.kinds import KINDS, OF_OTHERS, all_waits, waits_of
from monitoring.queries.waits.wait import read
from orchestrator.conf import conf
from orchestrator.models import StepRun, StepStatus

LOOKED_AT = 1_000
"""Rows that one page looks at for what no index finds; the page after it goes on from there."""

PROCESSES = 1_000
"""Processes, of one owner or escalated, whose waits are looked for: the newest."""

ORDER = ("wake_at", "started_at", "pk")
NOT_BY_INDEX = tuple(Coalesce(name, name).asc() for name in ORDER)
"""The same order, in words that no index has."""

DUES = {
    "soon": gettext_lazy("due soon"),
    "overdue": gettext_lazy("overdue"),
}

Place = tuple[datetime | None, datetime, int]
"""Where a visit stands in the list: when it wakes, when it began, and its key."""


@dataclass(frozen=True)
class WaitFilters(Search):
    """What the list is narrowed to.

    Args:
        definition: the name of one.
        kind: a name of `KINDS`.
        due: a name of `DUES`.
        escalated: whether its process is.
        owner: a user's name, "me" or "nobody".
    """

    definition: str = ""
    kind: str = ""
    due: str = ""
    escalated: str = ""
    owner: str = ""

    LABELS = {
        "all": gettext_lazy("in all"),
        "definition": gettext_lazy("Definition"),
        "kind": gettext_lazy("Waits for"),
        "due": gettext_lazy("Deadline"),
        "escalated": gettext_lazy("Escalated"),
        "owner": gettext_lazy("Owner"),
    }

    def words(self) -> dict[str, Any]:
        people = {"me": _("me"), "nobody": _("nobody")}
        return {
            "kind": KINDS[self.kind].label if self.kind in KINDS else self.kind,
            "due": DUES.get(self.due, self.due),
            "escalated": _("yes"),
            "owner": people.get(self.owner, self.owner),
        }

    def mistakes(self) -> Iterator[str]:
        if self.kind and self.kind not in KINDS:
            yield _("There is no such kind of wait: choose one of those offered.")
        if self.due and self.due not in DUES:
            yield _("What is due is looked for as soon or overdue.")

    def counted(self) -> QuerySet[StepRun]:
        """Those that are counted."""
        if self.mistake:
            return StepRun.objects.none()
        rows = self._found()
        if not self._of_few and self.looked_for():
            looked_at = rows.order_by(*ORDER).values("pk")[:MANY]
            rows = StepRun.objects.filter(self.looked_for(), pk__in=looked_at)
        # Without an order a whole table might be looked through for the first that match.
        return rows.order_by() if self._of_few else rows.order_by(*ORDER)

    def parts(self, after: Place | None) -> Iterator[WaitPart]:
        """What comes after a place, as parts in their order: what has a time, then what has none."""
        if self.mistake:
            return
        rows = self._found()
        order = NOT_BY_INDEX if self._of_few else ORDER
        looked_for = Q() if self._of_few else self.looked_for()
        if after is None or after[0] is not None:
            timed = rows.filter(wake_at__isnull=False)
            yield WaitPart(_behind(timed, after), order, looked_for)
        if not self.due:
            untimed = rows.filter(wake_at__isnull=True)
            before = after if after is not None and after[0] is None else None
            yield WaitPart(_behind(untimed, before), order, looked_for)

    def matches(self, keys: list[int]) -> set[int]:
        """Those of some visits that still match."""
        if self.mistake:
            return set()
        rows = self._found().filter(self.looked_for(), pk__in=keys)
        return set(rows.values_list("pk", flat=True))

    @property
    def _of_few(self) -> bool:
        """Whether an index finds the processes, of which there are few."""
        return bool(self.escalated or self.owner not in ("", "nobody"))

    def _found(self) -> QuerySet[StepRun]:
        """What indexes find; where the processes are few, all that match."""
        rows = waits_of(self._processes()) if self._of_few else all_waits()
        if self.due == "overdue":
            rows = rows.filter(wake_at__lte=Now() - LATE)
        elif self.due == "soon":
            soon = timedelta(seconds=conf().DUE_SOON_SECONDS)
            rows = rows.filter(wake_at__gt=Now() - LATE, wake_at__lte=Now() + soon)
        return rows.filter(self.looked_for()) if self._of_few else rows

    def _processes(self) -> list[UUID]:
        few = Filters(escalated=self.escalated, owner=self.owner, reader=self.reader)
        rows = few.applied().live().order_by("-pk")
        return list(rows.values_list("pk", flat=True)[:PROCESSES])

    def looked_for(self) -> Q:
        """What must be so of a visit, which no index finds."""
        found = Q()
        if self.definition:
            found &= Q(instance__name=self.definition)
        if self.kind:
            found &= KINDS[self.kind].rows
        if self.due:
            found &= Q(status=StepStatus.WAITING, kind__in=OF_OTHERS)
        if self.owner == "nobody":
            found &= Q(instance__owner=None)
        return found


@dataclass(frozen=True)
class WaitPart:
    """A part of the list.

    Args:
        rows: what an index finds.
        order: in the words of that index.
        looked_for: what else must be so of them; it is asked of so many rows at once as a page may look at.
    """

    rows: QuerySet[StepRun]
    order: tuple[Any, ...]
    looked_for: Q

    def first(self, number: int) -> tuple[list[StepRun], Place | None]:
        """The first of them, and the place at which the looking stopped; None when all were looked at."""
        rows = self.rows.order_by(*self.order)
        if not self.looked_for:
            return list(read(rows)[:number]), None
        found, edge = bounded(rows, self.looked_for, ORDER, LOOKED_AT)
        # Their keys first: else all that is looked at is read with its process, to be left out again.
        first = found.order_by(*NOT_BY_INDEX).values_list("pk", flat=True)
        shown = StepRun.objects.filter(among("pk", first[:number]))
        return list(read(shown).order_by(*NOT_BY_INDEX)), edge


def place_of(run: StepRun) -> Place:
    """Where a visit stands in the list."""
    return run.wake_at, run.started_at, run.pk


def _behind(rows: QuerySet[StepRun], place: Place | None) -> QuerySet[StepRun]:
    """The rows after a place in the order of the list; all of them wake some time, or none does."""
    if place is None:
        return rows
    wakes, began, pk = place
    later = Q(started_at__gt=began) | Q(pk__gt=pk, started_at=began)
    if wakes is None:
        return rows.filter(later, started_at__gte=began)
    return rows.filter(
        Q(wake_at__gt=wakes) | (Q(wake_at=wakes) & later), wake_at__gte=wakes
    )
