"""The parked events of a process by type, with the steps that would take them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Min
from django.utils import timezone

from monitoring.process.revision.moment import ProcessMoment
from orchestrator.definition.graph import Graph
from orchestrator.models import InboxEvent, ProcessInstance, StepKind
from orchestrator.models.inbox_event import UNDECIDED

MOST = 20
"""The maximum number of types that the page shows."""


@dataclass(frozen=True)
class ParkedEvents:
    """The parked events of one type.

    Args:
        type: their type.
        number: the number of them.
        steps: later steps that take the type or wait for it.
        unfit: current steps that take the type, but whose guards do not hold for these events.
        patience_until: the end of the patience for the first event; None while the process is paused.
        told: whether this time is over, and people have been notified.
    """

    type: str
    number: int
    steps: list[str]
    unfit: list[str]
    patience_until: datetime | None
    told: bool


@dataclass(frozen=True)
class ParkedTypes:
    """The types with the oldest events, and the number of events of other types."""

    types: Sequence[ParkedEvents]
    more: int


NOTHING = ParkedTypes((), 0)


def parked_types_of(moment: ProcessMoment) -> ParkedTypes:
    """Read the parked events of a process, by type, the oldest first."""
    instance, labels = moment.present, moment.labels
    if instance.finished_at is None and not instance.parked:
        return NOTHING
    rows = _by_type(instance)
    takers, here = _takers(moment.graph), _current(instance)
    types = [_of_type(row, takers.get(row["type"], []), here, labels) for row in rows]
    return ParkedTypes(
        types, max(instance.parked - sum(row.number for row in types), 0)
    )


def _by_type(instance: ProcessInstance) -> list[dict[str, Any]]:
    """Return the number of events, the number of undecided ones and the earliest end of patience, by type."""
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
    """Return the current steps that receive events."""
    if instance.paused_at:
        return set()
    waits = instance.step_runs.filter(finished_at=None, kind__in=["", StepKind.WAIT])
    return set(waits.values_list("node", flat=True))


def _takers(graph: Graph) -> dict[str, list[str]]:
    """Return the steps that take each type of event, in the order of the graph."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for edge in graph.edges:
        if edge.kind == "event":
            found[edge.event][edge.source] = None
    for node in graph.nodes:
        if node.kind == "wait":
            event, *_ = re.findall(r"\w+", node.detail.removeprefix("for ")) or [""]
            found[event][node.id] = None
    return {event: list(steps) for event, steps in found.items()}
