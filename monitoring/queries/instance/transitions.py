"""The transitions of a process in brief, for all parts of its page that need no more of them.

Those of a short history are read once for all parts; of a long one each part reads its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from django.db.models import Q

from monitoring.queries.instance.once import once_of
from orchestrator.models import ProcessInstance

SHORT = 240
"""Transitions of a history that is read whole."""


class Transition(NamedTuple):
    """One of them: its number, when it was, how the process stood after it, and the edges it took, with commas."""

    revision: int
    at: datetime
    status: str
    edge: str


class Transitions:
    """Those of one process.

    Args:
        instance: the process, as it is now.
    """

    def __init__(self, instance: ProcessInstance) -> None:
        self.instance = instance

    def numbered(self, wanted: Collection[int]) -> Sequence[Transition]:
        """Those with these numbers, in their order."""
        if self._all is not None:
            return [row for row in self._all if row.revision in wanted]
        return self._read(Q(revision__in=wanted))

    def between(self, first: int, last: int) -> Sequence[Transition]:
        """Those from one number to another, both included, in their order."""
        if self._all is not None:
            return [row for row in self._all if first <= row.revision <= last]
        return self._read(Q(revision__range=(first, last)))

    def edges(self, spans: Iterable[tuple[int, int]]) -> set[str]:
        """What those of some spans of numbers took, both ends included."""
        if self._all is not None:
            short = [row for span in spans for row in self.between(*span)]
            return {row.edge for row in short if row.edge}
        rows = self.instance.checkpoints.exclude(edge="").order_by()
        first, *others = (
            rows.filter(revision__range=span).values_list("edge") for span in spans
        )
        return {edge for (edge,) in first.union(*others)}

    @cached_property
    def _all(self) -> Sequence[Transition] | None:
        return self._read(Q()) if self.instance.revision <= SHORT else None

    def _read(self, which: Q) -> Sequence[Transition]:
        rows = self.instance.checkpoints.filter(which).order_by("revision")
        return list(map(Transition._make, rows.values_list(*Transition._fields)))


def transitions_of(instance: ProcessInstance) -> Transitions:
    """The transitions of a process, read once for a page."""
    return once_of(instance, Transitions)
