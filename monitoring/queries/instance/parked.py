"""The events that are parked for a process, by type, each with the steps that would take it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Min
from django.utils import timezone

from orchestrator.definition.graph import Graph
from orchestrator.models import InboxEvent, ProcessInstance, StepKind
from orchestrator.models.inbox_event import UNDECIDED

MOST = 20
"""Types that the page shows."""


@dataclass(frozen=True)
class ParkedEvents:
    """Those of one type.

    Args:
        type: their type.
        number: how many there are.
        steps: later steps whose rows take the type, or that wait for it.
        unfit: steps that the process is in and that take the type; their guards do not hold for these.
        patience_until: when people are told of the first of them; None where that stands still.
        told: that they were.
    """

    type: str
    number: int
    steps: list[str]
    unfit: list[str]
    patience_until: datetime | None
    told: bool


@dataclass(frozen=True)
class Parked:
    """The types whose oldest came first, and how many events of others there are beside."""

    types: Sequence[ParkedEvents]
    more: int


NOTHING = Parked((), 0)


def parked_of(
    instance: ProcessInstance, graph: Graph, labels: Mapping[str, str]
) -> Parked:
    """What is parked for a process, by type, the oldest first."""
    if instance.finished_at is None and not instance.parked:
        return NOTHING
    rows = _by_type(instance)
    takers, here = _takers(graph), _current(instance)
    types = [_of_type(row, takers.get(row["type"], []), here, labels) for row in rows]
    return Parked(types, max(instance.parked - sum(row.number for row in types), 0))


def _by_type(instance: ProcessInstance) -> list[dict[str, Any]]:
    """How many there are, how many of these are being offered, and the first end of patience."""
    rows = InboxEvent.objects.filter(process=instance.pk).parked().values("type")
    rows = rows.annotate(
        number=Count("pk"),
        offered=Count("pk", filter=UNDECIDED),
        until=Min("patience_until"),
        oldest=Min("pk"),
    )
    return list(rows.order_by("oldest")[:MOST])


def _of_type(
    row: Mapping[str, Any],
    takers: Iterable[str],
    here: set[str],
    labels: Mapping[str, str],
) -> ParkedEvents:
    unfit = [step for step in takers if step in here and not row["offered"]]
    return ParkedEvents(
        row["type"],
        row["number"],
        [labels.get(step, step) for step in takers if step not in unfit],
        [labels.get(step, step) for step in unfit],
        row["until"],
        told=row["until"] is not None and row["until"] <= timezone.now(),
    )


def _current(instance: ProcessInstance) -> set[str]:
    """The steps in which the process is offered events now."""
    if instance.paused_at:
        return set()
    waits = instance.step_runs.filter(finished_at=None, kind__in=["", StepKind.WAIT])
    return set(waits.values_list("node", flat=True))


def _takers(graph: Graph) -> dict[str, list[str]]:
    """The steps that take each type of event, in the order of the graph."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for edge in graph.edges:
        if edge.kind == "event":
            found[edge.event][edge.source] = None
    for node in graph.nodes:
        if node.kind == "wait":
            event, *_ = re.findall(r"\w+", node.detail.removeprefix("for ")) or [""]
            found[event][node.id] = None
    return {event: list(steps) for event, steps in found.items()}
