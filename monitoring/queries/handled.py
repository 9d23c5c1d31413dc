"""Groups of failures that people have marked: which are left out of the inbox, which are back, and who sees to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.db.models import Exists, F, OuterRef, QuerySet, Subquery

from monitoring.queries.causes import open_of_cause
from orchestrator.models import FailureMark, Incident


@dataclass(frozen=True)
class Marking:
    """What people have said of one cause.

    Args:
        mark: that.
        in_force: whether it is left out of the inbox now.
    """

    mark: FailureMark
    in_force: bool

    @property
    def is_back(self) -> bool:
        """Whether it was handled, and is in the inbox again."""
        return self.mark.handled_at is not None and not self.in_force


def handled() -> list[FailureMark]:
    """The marks of what is left out of the inbox now, in the order of their causes: few, as no more can be made."""
    newest = open_of_cause(OuterRef("fingerprint")).values("pk")[:1]
    marks = FailureMark.objects.handled().annotate(newest=Subquery(newest))
    return list(
        marks.filter(newest__lte=F("last"))
        .select_related("owner")
        .order_by("fingerprint")
    )


def handled_causes() -> list[str]:
    """The causes of what is left out of the inbox now, in their order."""
    marks = FailureMark.objects.handled()
    if not marks.exists():  # as is most often so: that is known sooner
        return []
    return [mark.fingerprint for mark in handled()]


def inbox(causes: Sequence[str]) -> list[QuerySet[Incident]]:
    """The open failures but for those of some causes, in parts, each of which an index finds whatever is between them.

    Args:
        causes: what is handled, in order.
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
    """What people have said of some causes, by cause; of most nothing."""
    newest = open_of_cause(OuterRef("fingerprint")).values("pk")[:1]
    now = FailureMark.objects.handled().filter(pk=OuterRef("pk"))
    marks = FailureMark.objects.filter(pk__in=list(causes)).select_related("owner")
    return {
        mark.fingerprint: Marking(
            mark, mark.now and mark.newest is not None and mark.newest <= mark.last
        )
        for mark in marks.annotate(now=Exists(now), newest=Subquery(newest))
    }
