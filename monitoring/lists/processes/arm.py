"""A part of the list of processes that an index finds, newest or oldest first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import CharField, Q, QuerySet
from django.db.models.functions import Cast

from monitoring.queries.any_of import any_of
from monitoring.queries.bounded_search import first_matching
from monitoring.queries.conditions import ConditionTree
from monitoring.queries.data_values import matching_keys
from orchestrator.models.process_instance import ProcessInstanceQuerySet

LOOKED_AT = 1_000
"""The number of rows that one page checks for unindexed conditions; the next page continues after them."""

NOT_BY_INDEX = Cast("pk", CharField()).desc()
"""The order of the keys as an expression, which no index has."""


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
        self, number: int, before: UUID | None = None, after: UUID | None = None
    ) -> tuple[ProcessInstanceQuerySet, UUID | None]:
        """Return the newest of a span of keys, and the key at which the search stopped; None after all rows.

        With `oldest` it returns the oldest.
        """
        if self.beside is None and not self.unindexed and self.where is None:
            rows = self.rows.filter(**_span("pk", before, after))
            return self._turned(rows.order_by(*self.order))[:number], None

        def keys_behind(edge: UUID | None, many: int) -> list[UUID]:
            ends = (before, edge or after) if self.oldest else (edge or before, after)
            return list(self._keys(*ends)[:many])

        found, edge = first_matching(number, LOOKED_AT, keys_behind, self._matching)
        rows = self._all.filter(any_of("pk", found))
        return self._turned(rows.order_by(NOT_BY_INDEX)), edge

    def filter(self, condition: Q) -> Arm:
        """Return the part with one more condition without an index."""
        return replace(self, unindexed=self.unindexed & condition)

    @property
    def _all(self) -> ProcessInstanceQuerySet:
        """All processes; with the conditions of an index PostgreSQL might scan that index instead of the keys."""
        found: ProcessInstanceQuerySet = self.rows.model._default_manager.all()
        return found

    def _matching(self, keys: list[UUID], number: int) -> list[UUID]:
        """Return the first of some processes that meet all conditions."""
        rows = self._all if self.beside is None else self.rows
        found = rows.filter(self.unindexed, any_of("pk", keys))
        if self.where is not None:
            matched = matching_keys(found, self.where)
            return sorted(matched, reverse=not self.oldest)[:number]
        first = self._turned(found.order_by(NOT_BY_INDEX))
        return list(first.values_list("pk", flat=True)[:number])

    def _turned(self, rows: Any) -> Any:
        return rows.reverse() if self.oldest else rows

    def _keys(self, before: UUID | None, after: UUID | None) -> QuerySet[Any, UUID]:
        if self.beside is None:
            rows = self.rows.filter(**_span("pk", before, after))
            rows = self._turned(rows.order_by(*self.order))
            keys: QuerySet[Any, UUID] = rows.values_list("pk", flat=True)
            return keys
        beside = self._turned(self.beside.filter(**_span("instance", before, after)))
        found: QuerySet[Any, UUID] = beside.values_list("instance_id", flat=True)
        return found


def _span(field: str, before: UUID | None, after: UUID | None) -> dict[str, UUID]:
    """Return the condition that a key is between two others."""
    ends = {f"{field}__lt": before, f"{field}__gt": after}
    return {name: end for name, end in ends.items() if end is not None}
