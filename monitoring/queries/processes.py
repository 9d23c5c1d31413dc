"""Queries for processes with their definitions, without the large graphs of the definitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery

from monitoring.queries.lists import OneModel
from orchestrator.models import ProcessInstance
from orchestrator.models.process_instance import ProcessInstanceQuerySet


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
    named = rows.filter(correlation_key=key).order_by("-pk")
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
