"""Queries for processes: their order in lists, and their definitions without the large graphs of these."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple, Self, cast
from uuid import UUID

from django.db.models import (
    BooleanField,
    DateTimeField,
    F,
    Func,
    OuterRef,
    QuerySet,
    Subquery,
    UUIDField,
    Value,
)
from django.db.models.functions import Coalesce

from monitoring.queries.counts import time_from_sql, uuid_from_sql
from monitoring.queries.lists import OneModel, format_place, parse_place
from orchestrator.models import ProcessInstance
from orchestrator.models.process_instance import ProcessInstanceQuerySet

NOT_BY_INDEX = (Coalesce("started_at", "started_at").desc(), F("pk").desc())
"""The order of lists of processes, with an expression that no index has."""


class ProcessPlace(NamedTuple):
    """The place of a process in lists; a later place is greater."""

    started_at: datetime
    pk: UUID

    def __str__(self) -> str:
        """Return the place as it stands in an address."""
        return format_place(self.started_at, self.pk)

    @classmethod
    def of(cls, process: ProcessInstance) -> Self:
        return cls(process.started_at, process.pk)

    def as_values(self) -> tuple[Value, Value]:
        """Return the place as values of a query."""
        at, pk = DateTimeField(), UUIDField()
        return Value(self.started_at, at), Value(self.pk, pk)

    @classmethod
    def from_sql(cls, started_at: Any, pk: Any) -> Self:
        """Return the place from the values of raw SQL."""
        return cls(cast(datetime, time_from_sql(started_at)), uuid_from_sql(pk))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a place of an address, or find the place of a process id; None for anything else."""
        if place := parse_place(text, parse_key=UUID):
            return cls(*place)
        try:
            known = ProcessInstance.objects.filter(pk=UUID(text))
        except ValueError:
            return None
        row = known.values_list("started_at", "pk").first()
        return None if row is None else cls(*row)


def key_in_place(text: str) -> str:
    """Return the process id in a place of an address."""
    return text.rpartition("_")[2]


def compare_places(
    rows: QuerySet[OneModel],
    before: ProcessPlace | None = None,
    after: ProcessPlace | None = None,
    fields: tuple[str, str] = ("started_at", "pk"),
) -> QuerySet[OneModel]:
    """Limit rows to those between two places, without these.

    The database compares the pair as one value, as an index that ends in both is ordered.

    Args:
        rows: the rows.
        before: the greater place; None for no bound.
        after: the lesser place; None for no bound.
        fields: the fields with the start of the process and with its key.
    """
    for sign, place in (("<", before), (">", after)):
        if place is not None:
            pair = compare_pairs(map(F, fields), sign, place.as_values())
            rows = rows.filter(pair)
    return rows


def compare_pairs(left: Iterable[Any], sign: str, right: Iterable[Any]) -> Func:
    """Return the condition that one pair of expressions is less or greater than another one.

    Args:
        left: the first pair.
        sign: the operator in SQL.
        right: the second pair.
    """
    pairs = [Func(*pair, template="(%(expressions)s)") for pair in (left, right)]
    form = {"template": "%(expressions)s", "arg_joiner": f" {sign} "}
    return Func(*pairs, **form, output_field=BooleanField())


def process_rows(*related: str, data: bool = True) -> ProcessInstanceQuerySet:
    """Return all processes.

    Args:
        related: further related rows to read.
        data: whether to read their data, which may be large.
    """
    rows = ProcessInstance.objects.select_related("definition", *related)
    return rows.defer("definition__graph", *([] if data else ["data"]))


def processes_with_key(key: str, most: int) -> list[UUID]:
    """Return the keys of the newest processes of a business key, by the index of processes with one."""
    rows = ProcessInstance.objects.exclude(correlation_key="")
    named = rows.filter(correlation_key=key).newest_first()
    return list(named.values_list("pk", flat=True)[:most])


def definition_name(process: str = "instance_id") -> Subquery:
    """Return a subquery for the definition name of a row's process.

    PostgreSQL may run a join as a scan of all processes.

    Args:
        process: the column with the process id.
    """
    found = ProcessInstance.objects.filter(pk=OuterRef(process))
    return Subquery(found.values("name")[:1])


def fetch_in_order(rows: QuerySet[OneModel], keys: Iterable[Any]) -> list[OneModel]:
    """Return the rows with these keys, in the order of the keys."""
    wanted = list(keys)
    found = rows.in_bulk(wanted)
    return [found[key] for key in wanted if key in found]
