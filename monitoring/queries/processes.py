"""Processes as pages read them: with their definitions, but without the graphs of these, which are kept and large."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, OuterRef, QuerySet, Subquery

from orchestrator.models import ProcessInstance
from orchestrator.models.process_instance import ProcessInstanceQuerySet

OneModel = TypeVar("OneModel", bound=Model)


def processes(*related: str, data: bool = True) -> ProcessInstanceQuerySet:
    """All processes.

    Args:
        related: what else is read with each.
        data: whether their data is, which may be large.
    """
    rows = ProcessInstance.objects.select_related("definition", *related)
    return rows.defer("definition__graph", *([] if data else ["data"]))


def of_business_key(key: str, most: int) -> list[UUID]:
    """The newest processes of a business key, by the index that has those with one."""
    rows = ProcessInstance.objects.exclude(correlation_key="")
    named = rows.filter(correlation_key=key).order_by("-pk")
    return list(named.values_list("pk", flat=True)[:most])


def definition_name(process: str = "instance_id") -> Subquery:
    """That of each row's process, asked of each: a join may be planned as a look at every process.

    Args:
        process: the row's column with the process id.
    """
    found = ProcessInstance.objects.filter(pk=OuterRef(process))
    return Subquery(found.values("name")[:1])


def in_order(rows: QuerySet[OneModel], keys: Iterable[Any]) -> list[OneModel]:
    """Those of some rows that have these keys, in the order of the keys."""
    wanted = list(keys)
    found = rows.in_bulk(wanted)
    return [found[key] for key in wanted if key in found]
