"""The transitions of a process in brief, for the parts of its page that need only these columns.

A short history is read once for all parts; each part reads its own rows of a long history.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from django.db.models import Q

from monitoring.process.revision.versions import Versions
from orchestrator.models import OperatorAction, ProcessInstance

SHORT = 240
"""The maximum number of transitions of a history that is read as a whole."""

LOOKED_AT = 1_000
"""The number of transitions that are read at each end of a long history of a process manager."""


class Transition(NamedTuple):
    """A transition: its number, its time, the status after it, and its edges with commas between them."""

    revision: int
    at: datetime
    status: str
    edge: str


class Transitions:
    """The transitions of one process, and the versions that it was on.

    Args:
        instance: the process, as it is now.
    """

    def __init__(self, instance: ProcessInstance) -> None:
        self.instance = instance
        self.versions = Versions(instance)

    def numbered(self, wanted: Collection[int]) -> Sequence[Transition]:
        """Return the transitions with these numbers, in order."""
        if self._all is not None:
            return [row for row in self._all if row.revision in wanted]
        return self._read(Q(revision__in=wanted))

    def between(self, first: int, last: int) -> Sequence[Transition]:
        """Return the transitions from one number to another, both included, in order."""
        if self._all is not None:
            return [row for row in self._all if first <= row.revision <= last]
        return self._read(Q(revision__range=(first, last)))

    @cached_property
    def resumed(self) -> Sequence[tuple[int, int]]:
        """Each resumption: the revision of its checkpoint, and its own revision, the first one first."""
        rows = OperatorAction.objects.filter(
            instance=self.instance, action="resume", result=OperatorAction.Result.DONE
        )
        found = (row["after"] for row in rows.values("after"))
        pairs = [(after["resumed_from"], after["revision"]) for after in found]
        return sorted(pairs, key=lambda pair: pair[1])

    @property
    def looked_at_in_part(self) -> int:
        """The number of transitions read at each end of a history that is too long to read; else 0."""
        manager = not self.instance.definition.is_workflow
        return LOOKED_AT if manager and self.instance.revision > 2 * LOOKED_AT else 0

    def taken(self, until: int) -> set[str]:
        """Return the ids of the edges taken until a revision, without edges that a resumption superseded.

        The edges of a process manager come from its first and last transitions until then. All edges of a workflow are
        read, since its graph limits their number. An edge of another version counts as the same edge of the version at
        the revision, if that version has it.
        """
        found = {}
        for first, last in self.versions.spans(until):
            told = (
                self._of_workflow(first, last, until)
                if self.instance.definition.is_workflow
                else self._at_both_ends(first, last)
            )
            found[first] = {edge for text in told for edge in text.split(",")}
        return self.versions.edges(found, until)

    def _of_workflow(self, first: int, last: int, until: int) -> Iterable[str]:
        """Return the edges of all transitions in a span of numbers; a row has several with commas."""
        rows = self.instance.checkpoints.exclude(edge="")
        if first:
            rows = rows.filter(revision__gte=first)
        if last < self.instance.revision:
            rows = rows.filter(revision__lte=last)
        for to, at in self.resumed:
            if at <= until:
                rows = rows.exclude(revision__gt=to, revision__lt=at)
        return rows.order_by("edge").values_list("edge", flat=True).distinct()

    def _at_both_ends(self, first: int, last: int) -> Iterable[str]:
        """Return the edges of the first and last transitions in a span of numbers; a row has several with commas."""
        begin = (first, min(first + LOOKED_AT, last))
        end = (max(last - LOOKED_AT + 1, first), last)
        if self._all is not None:
            short = [row for span in (begin, end) for row in self.between(*span)]
            return {row.edge for row in short if row.edge}
        rows = self.instance.checkpoints.exclude(edge="").order_by()
        one, other = (
            rows.filter(revision__range=span).values_list("edge")
            for span in (begin, end)
        )
        return {edge for (edge,) in one.union(other)}

    @cached_property
    def _all(self) -> Sequence[Transition] | None:
        return self._read(Q()) if self.instance.revision <= SHORT else None

    def _read(self, which: Q) -> Sequence[Transition]:
        rows = self.instance.checkpoints.filter(which).order_by("revision")
        return list(map(Transition._make, rows.values_list(*Transition._fields)))
