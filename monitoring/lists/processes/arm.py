"""A part of the list of processes that an index finds, newest or oldest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet

from monitoring.queries.any_of import any_of
from monitoring.queries.bounded_search import first_matching
from monitoring.queries.conditions import ConditionTree
from monitoring.queries.data_values import matching_keys
from monitoring.queries.processes import NOT_BY_INDEX, ProcessPlace, compare_places
from orchestrator.models.process_instance import ProcessInstanceQuerySet

LOOKED_AT = 1_000
"""The number of rows that one page checks for unindexed conditions; the next page continues after them."""

BESIDE = ("process_started_at", "instance")
"""The place of a process in rows of another table."""


class FirstRows(NamedTuple):
    """The first rows of a part of a list.

    Args:
        rows: the processes, in the order of their starts.
        edge: the place at which the search stopped; None after all rows.
        places: the place of each in the list where another table tells it; None if their own starts do. A release that
            does not know the start of a process wrote another moment into that table.
    """

    rows: ProcessInstanceQuerySet
    edge: ProcessPlace | None = None
    places: Mapping[UUID, ProcessPlace] | None = None

    def place_of(self, started_at: Any, pk: UUID) -> ProcessPlace:
        """Return the place of a process of this part in the list."""
        if self.places is None:
            return ProcessPlace(started_at, pk)
        return self.places[pk]


@dataclass(frozen=True)
class Arm:
    """A part of a list.

    Args:
        rows: the processes that an index finds.
        order: the order of that index, newest first.
        unindexed: conditions without an index; they are checked on a limited number of rows.
        beside: rows of another table in the order of their index; they name the processes to check.
        where: conditions on the data of the processes.
        oldest: whether the oldest come first.
    """

    rows: ProcessInstanceQuerySet
    order: tuple[Any, ...]
    unindexed: Q
    beside: QuerySet[Any] | None = None
    where: ConditionTree | None = None
    oldest: bool = False

    def newest(
        self,
        number: int,
        before: ProcessPlace | None = None,
        after: ProcessPlace | None = None,
    ) -> FirstRows:
        """Return the newest between two places; with `oldest` the oldest."""
        if self.beside is None and not self.unindexed and self.where is None:
            rows = compare_places(self.rows, before, after)
            return FirstRows(self._turned(rows.order_by(*self.order))[:number])

        def places_behind(edge: ProcessPlace | None, many: int) -> list[ProcessPlace]:
            ends = (before, edge or after) if self.oldest else (edge or before, after)
            return [ProcessPlace(*row) for row in self._places(*ends)[:many]]

        found, edge = first_matching(number, LOOKED_AT, places_behind, self._matching)
        places = {place.pk: place for place in reversed(found)}
        rows = self._all.filter(any_of("pk", places))
        told = None if self.beside is None else places
        return FirstRows(self._turned(rows.order_by(*NOT_BY_INDEX)), edge, told)

    def filter(self, condition: Q) -> Arm:
        """Return the part with one more condition without an index."""
        return replace(self, unindexed=self.unindexed & condition)

    @property
    def _all(self) -> ProcessInstanceQuerySet:
        """All processes; with the conditions of an index PostgreSQL might scan that index instead of the keys."""
        found: ProcessInstanceQuerySet = self.rows.model._default_manager.all()
        return found

    def _matching(self, places: list[ProcessPlace], number: int) -> list[ProcessPlace]:
        """Return the first of some processes that meet all conditions."""
        rows = self._all if self.beside is None else self.rows
        known = {place.pk: place for place in reversed(places)}
        found = rows.filter(self.unindexed, any_of("pk", known))
        keys: Iterable[UUID] = found.order_by().values_list("pk", flat=True)
        if self.where is not None:
            keys = matching_keys(found, self.where)
        first = sorted((known[key] for key in keys), reverse=not self.oldest)
        return first[:number]

    def _turned(self, rows: Any) -> Any:
        return rows.reverse() if self.oldest else rows

    def _places(
        self, before: ProcessPlace | None, after: ProcessPlace | None
    ) -> QuerySet[Any, tuple[Any, ...]]:
        if self.beside is None:
            rows = compare_places(self.rows, before, after).order_by(*self.order)
            places: QuerySet[Any, Any] = self._turned(rows)
            return places.values_list("started_at", "pk")
        beside = compare_places(self.beside, before, after, BESIDE)
        found: QuerySet[Any, Any] = self._turned(beside)
        return found.values_list(*BESIDE)
