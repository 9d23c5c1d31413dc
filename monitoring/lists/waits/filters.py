"""The filters of the list of waits, and its order: the least time left first, then the longest wait."""

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

from monitoring.lists.processes.filters import Filters, owner_word
from monitoring.lists.waits.kinds import KINDS, OF_OTHERS, all_waits, waits_of_processes
from monitoring.lists.waits.wait import select_waits
from monitoring.queries.activity import LATE
from monitoring.queries.any_of import any_of
from monitoring.queries.bounded_search import bounded_search
from monitoring.queries.counts import MANY
from monitoring.queries.lists import Search
from orchestrator.configuration.conf import conf
from orchestrator.models import StepRun, StepStatus

LOOKED_AT = 1_000
"""The number of rows that one page checks for unindexed conditions; the next page continues after them."""

PROCESSES = 1_000
"""The newest processes of one owner, or escalated ones, whose waits are listed."""

ORDER = ("wake_at", "started_at", "pk")
NOT_BY_INDEX = tuple(Coalesce(name, name).asc() for name in ORDER)
"""The same order as expressions, which no index has."""

DUES = {"soon": gettext_lazy("due soon"), "overdue": gettext_lazy("overdue")}

WaitPlace = tuple[datetime | None, datetime, int]
"""The place of a visit in the list: its time of waking, its beginning and its key."""


@dataclass(frozen=True)
class WaitFilters(Search):
    """The filters of the list.

    Args:
        definition: the name of one.
        kind: a name of `KINDS`.
        due: a name of `DUES`.
        escalated: whether the process is escalated.
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
        return {
            "kind": KINDS[self.kind].label if self.kind in KINDS else self.kind,
            "due": DUES.get(self.due, self.due),
            "escalated": _("yes"),
            "owner": owner_word(self.owner),
        }

    def mistakes(self) -> Iterator[str]:
        if self.kind and self.kind not in KINDS:
            yield _("There is no such kind of wait: choose one of those offered.")
        if self.due and self.due not in DUES:
            yield _("What is due is looked for as soon or overdue.")

    def rows_to_count(self) -> QuerySet[StepRun]:
        """Return the waits to count."""
        if self.mistake:
            return StepRun.objects.none()
        rows = self._found()
        if not self._of_few and self.unindexed():
            looked_at = rows.order_by(*ORDER).values("pk")[:MANY]
            rows = StepRun.objects.filter(self.unindexed(), pk__in=looked_at)
        # Without an order PostgreSQL might scan the whole table for the first matches.
        return rows.order_by() if self._of_few else rows.order_by(*ORDER)

    def first(
        self, number: int, after: WaitPlace | None = None
    ) -> tuple[list[StepRun], WaitPlace | None]:
        """Return the first waits after a place, and the place at which the search stopped; None after all rows."""
        found: list[StepRun] = []
        for rows in self.parts(after):
            runs, edge = self._first_of(rows, number - len(found))
            found += runs
            if edge is not None or len(found) >= number:
                return found, edge
        return found, None

    def parts(self, after: WaitPlace | None) -> Iterator[QuerySet[StepRun]]:
        """Yield the queries along indexes after a place: waits with a time, then waits without."""
        if self.mistake:
            return
        rows = self._found().order_by(*(NOT_BY_INDEX if self._of_few else ORDER))
        if after is None or after[0] is not None:
            yield _behind(rows.filter(wake_at__isnull=False), after)
        if not self.due:
            before = after if after is not None and after[0] is None else None
            yield _behind(rows.filter(wake_at__isnull=True), before)

    def _first_of(
        self, rows: QuerySet[StepRun], number: int
    ) -> tuple[list[StepRun], WaitPlace | None]:
        unindexed = Q() if self._of_few else self.unindexed()
        if not unindexed:
            return list(select_waits(rows)[:number]), None
        found, edge = bounded_search(rows, unindexed, ORDER, LOOKED_AT)
        # The keys first: a single statement would read the process of each row that it looks at.
        first = found.order_by(*NOT_BY_INDEX).values_list("pk", flat=True)
        shown = StepRun.objects.filter(any_of("pk", first[:number]))
        return list(select_waits(shown).order_by(*NOT_BY_INDEX)), edge

    def matches(self, keys: list[int]) -> set[int]:
        """Return the keys of the visits that still match."""
        if self.mistake:
            return set()
        rows = self._found().filter(self.unindexed(), pk__in=keys)
        return set(rows.values_list("pk", flat=True))

    @property
    def _of_few(self) -> bool:
        """Whether an index finds the few processes that match."""
        return bool(self.escalated or self.owner not in ("", "nobody"))

    def _found(self) -> QuerySet[StepRun]:
        """Return the rows that indexes find; with few processes, all that match."""
        rows = waits_of_processes(self._processes()) if self._of_few else all_waits()
        if self.due == "overdue":
            rows = rows.filter(wake_at__lte=Now() - LATE)
        elif self.due == "soon":
            soon = timedelta(seconds=conf().DUE_SOON_SECONDS)
            rows = rows.filter(wake_at__gt=Now() - LATE, wake_at__lte=Now() + soon)
        return rows.filter(self.unindexed()) if self._of_few else rows

    def _processes(self) -> list[UUID]:
        few = Filters(escalated=self.escalated, owner=self.owner, reader=self.reader)
        rows = few.applied().live().newest_first()
        return list(rows.values_list("pk", flat=True)[:PROCESSES])

    def unindexed(self) -> Q:
        """Return the conditions that no index finds."""
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


def wait_place(run: StepRun) -> WaitPlace:
    """Return the place of a visit in the list."""
    return run.wake_at, run.started_at, run.pk


def _behind(rows: QuerySet[StepRun], place: WaitPlace | None) -> QuerySet[StepRun]:
    """Limit rows to those after a place; either all rows or none have a time of waking."""
    if place is None:
        return rows
    wakes, began, pk = place
    later = Q(started_at__gt=began) | Q(pk__gt=pk, started_at=began)
    if wakes is None:
        return rows.filter(later, started_at__gte=began)
    return rows.filter(
        Q(wake_at__gt=wakes) | (Q(wake_at=wakes) & later), wake_at__gte=wakes
    )
