"""The marks of failure groups: a handled group is left out of the list of failures until its mark ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from monitoring.lists.failures.causes import open_of_cause
from orchestrator.models import FailureMark, Incident
from orchestrator.models.incident import ABOUT_EVENTS

NOTHING_NEWER = Q(last__gte=F("newest"), handled_at__gte=F("renamed_at"))
"""The condition that no failure is newer than the mark, under its fingerprint or a later one."""


@dataclass(frozen=True)
class Marking:
    """The mark of one cause.

    Args:
        mark: the stored row.
        in_force: whether the list of failures leaves the group out now.
    """

    mark: FailureMark
    in_force: bool

    @property
    def is_back(self) -> bool:
        """Whether its mark has ended, and its failures are in the list again."""
        return self.mark.handled_at is not None and not self.in_force


def handled_causes() -> list[str]:
    """Return the causes that are handled now, sorted; their number is limited."""
    marks = FailureMark.objects.handled()
    if not marks.exists():  # the usual case, which a simpler query finds
        return []
    left_out = _with_newest(marks).filter(NOTHING_NEWER).order_by("fingerprint")
    return list(left_out.values_list("fingerprint", flat=True))


def _with_newest(marks: QuerySet[FailureMark]) -> QuerySet[FailureMark]:
    """Add the newest open failure of each mark's cause, and when the newest under a later fingerprint was opened."""
    failures = open_of_cause(OuterRef("fingerprint")).filter(~ABOUT_EVENTS)
    newest = failures.values("pk")[:1]
    renamed = Incident.objects.renamed(OuterRef("fingerprint"))
    at = Coalesce(Subquery(renamed.values("opened_at")[:1]), F("handled_at"))
    return marks.annotate(newest=Subquery(newest), renamed_at=at)


def unhandled_failures(causes: Sequence[str]) -> list[QuerySet[Incident]]:
    """Return the open failures without handled causes, as queries along an index between these causes.

    Args:
        causes: the handled causes, sorted.
    """
    rows = Incident.objects.open().failures()
    if not causes:
        return [rows]
    edges: list[str | None] = [None, *causes, None]
    found: list[QuerySet[Incident]] = []
    for after, before in pairwise(edges):
        part = rows
        if after is not None:
            part = part.filter(fingerprint__gt=after)
        if before is not None:
            part = part.filter(fingerprint__lt=before)
        found.append(part)
    return found


def handling_of(causes: Iterable[str]) -> dict[str, Marking]:
    """Return the marks of some causes, by cause; a cause without a mark is left out.

    A cause that an earlier release named otherwise has the mark of that name, which hides nothing: something failed
    since.
    """
    causes = list(causes)
    hidden = _with_newest(FailureMark.objects.handled()).filter(NOTHING_NEWER)
    now = Exists(hidden.filter(pk=OuterRef("pk")))
    marks = FailureMark.objects.of_causes(causes).select_related("owner")
    found = list(marks.annotate(now=now))
    earlier = {mark.led_to: Marking(mark, in_force=False) for mark in found}
    handling = earlier | {mark.pk: Marking(mark, mark.now) for mark in found}
    return {cause: handling[cause] for cause in causes if cause in handling}
