"""The marks of failure groups: a handled group is left out of the list of failures until its mark ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from monitoring.lists.failures.causes import open_of_cause
from orchestrator.models import FailureMark, Incident


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
    newest = open_of_cause(OuterRef("fingerprint")).values("pk")[:1]
    left_out = marks.filter(last__gte=Subquery(newest)).order_by("fingerprint")
    return list(left_out.values_list("fingerprint", flat=True))


def unhandled_failures(causes: Sequence[str]) -> list[QuerySet[Incident]]:
    """Return the open failures without handled causes, as queries along an index between these causes.

    Args:
        causes: the handled causes, sorted.
    """
    rows = Incident.objects.open()
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
    """Return the marks of some causes, by cause; a cause without a mark is left out."""
    newest = open_of_cause(OuterRef("fingerprint")).values("pk")[:1]
    now = FailureMark.objects.handled().filter(pk=OuterRef("pk"))
    marks = FailureMark.objects.filter(pk__in=list(causes)).select_related("owner")
    return {
        mark.fingerprint: Marking(
            mark, mark.now and mark.newest is not None and mark.newest <= mark.last
        )
        for mark in marks.annotate(now=Exists(now), newest=Subquery(newest))
    }
