"""Groups of failures that people have marked: handled and left out of the inbox, back in it, or assigned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.db.models import Exists, OuterRef, QuerySet, Subquery

from monitoring.queries.causes import open_of_cause
from orchestrator.models import FailureMark, Incident


@dataclass(frozen=True)
class Marking:
    """The mark of one cause.

    Args:
        mark: the stored row.
        in_force: whether the inbox leaves its failures out now.
    """

    mark: FailureMark
    in_force: bool

    @property
    def is_back(self) -> bool:
        """Whether its failures were handled, and are in the inbox again."""
        return self.mark.handled_at is not None and not self.in_force


def handled_causes() -> list[str]:
    """Return the causes that the inbox leaves out now, sorted; their number is limited."""
    marks = FailureMark.objects.handled()
    if not marks.exists():  # the usual case, which a simpler query finds
        return []
    newest = open_of_cause(OuterRef("fingerprint")).values("pk")[:1]
    left_out = marks.filter(last__gte=Subquery(newest)).order_by("fingerprint")
    return list(left_out.values_list("fingerprint", flat=True))


def inbox(causes: Sequence[str]) -> list[QuerySet[Incident]]:
    """Return the open failures without those of some causes, as queries between these causes along an index.

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
    """Return the marks of some causes, by cause; most causes have none."""
    newest = open_of_cause(OuterRef("fingerprint")).values("pk")[:1]
    now = FailureMark.objects.handled().filter(pk=OuterRef("pk"))
    marks = FailureMark.objects.filter(pk__in=list(causes)).select_related("owner")
    return {
        mark.fingerprint: Marking(
            mark, mark.now and mark.newest is not None and mark.newest <= mark.last
        )
        for mark in marks.annotate(now=Exists(now), newest=Subquery(newest))
    }
