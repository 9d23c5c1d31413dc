"""What needs a person, by its kind: each number is that of the list to which it leads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import F
from django.urls import reverse
from django.utils.translation import ngettext_lazy

from monitoring.queries.counts import CAP, FEW, Capped, capped, grouped
from monitoring.queries.decisions import asked
from monitoring.queries.events import by_verdict
from monitoring.queries.failures import open_of
from monitoring.queries.health import Health
from monitoring.queries.instances import Filters, overdue_visits
from orchestrator.models import ProcessInstance, Status


@dataclass(frozen=True)
class Kind:
    """One kind of what needs a person.

    Args:
        words: what so many of it are called.
        page: the name of the list that has them.
        query: what the list is narrowed to.
        urgent: whether it stands in red; what somebody has been asked for, or has stopped, does not.
    """

    words: Any
    page: str
    query: tuple[tuple[str, str], ...] = ()
    urgent: bool = True


KINDS = {
    "failures": Kind(
        ngettext_lazy("%(number)s failure", "%(number)s failures", "count"), "failures"
    ),
    "events": Kind(
        ngettext_lazy(
            "%(number)s event that nothing took",
            "%(number)s events that nothing took",
            "count",
        ),
        "events",
    ),
    "escalated": Kind(
        ngettext_lazy("%(number)s escalated", "%(number)s escalated", "count"),
        "instances",
        (("escalated", "1"),),
    ),
    "overdue": Kind(
        ngettext_lazy("%(number)s overdue", "%(number)s overdue", "count"),
        "instances",
        (("overdue", "1"),),
    ),
    "decisions": Kind(
        ngettext_lazy("%(number)s decision", "%(number)s decisions", "count"),
        "decisions",
        urgent=False,
    ),
    "paused": Kind(
        ngettext_lazy("%(number)s paused", "%(number)s paused", "count"),
        "instances",
        (("status", str(Status.PAUSED)),),
        urgent=False,
    ),
}
"""In the order of their urgency."""


@dataclass(frozen=True)
class Attention:
    """So many of a kind, of one definition or of all."""

    kind: Kind
    number: Capped
    definition: str = ""

    @property
    def words(self) -> str:
        """The number with what it counts."""
        of = {"number": self.number, "count": self.number.number}
        return str(self.kind.words % of)

    @property
    def address(self) -> str:
        """Where they are listed."""
        given = dict(self.kind.query)
        if self.definition:
            given["definition"] = self.definition
        query = f"?{urlencode(given)}" if given else ""
        return f"{reverse(f'monitoring:{self.kind.page}')}{query}"


def needs(health: Health, *, events: bool) -> list[Attention]:
    """What needs a person in all.

    Args:
        health: what has been counted for the menu.
        events: whether the reader may see events.
    """
    found = {
        "failures": health.failures,
        "events": health.events if events else Capped(0, FEW),
        "escalated": capped(Filters(escalated="1").applied()),
        "overdue": capped(Filters(overdue="1").applied()),
        "decisions": health.decisions,
        "paused": capped(Filters(status=Status.PAUSED).applied()),
    }
    return _some(found)


def needs_by_definition() -> dict[str, list[Attention]]:
    """What needs a person of each definition, by its name: no more than so many of each kind are looked at.

    Of events it is those that a process has been found for.
    """
    found: dict[str, dict[str, Capped]] = defaultdict(dict)
    for kind, rows in _parts():
        for name, number in grouped(rows, "of", cap=CAP):
            found[name][kind] = Capped(number, CAP)
    return {name: _some(numbers, name) for name, numbers in found.items()}


def _parts() -> Iterator[tuple[str, Any]]:
    of_visit, of_process = F("instance__name"), F("name")
    yield "failures", open_of().order_by("-pk").annotate(of=of_visit)
    yield "decisions", asked().order_by("pk").annotate(of=of_visit)
    routed = [rows.filter(process__isnull=False) for rows in by_verdict().values()]
    yield "events", [rows.annotate(of=F("process__name")) for rows in routed]
    live = ProcessInstance.objects.live()
    yield "escalated", ProcessInstance.objects.escalated().annotate(of=of_process)
    yield "paused", live.filter(status=Status.PAUSED).annotate(of=of_process)
    if overdue_visits().exists():
        rows = Filters(overdue="1").applied()
        yield "overdue", rows.annotate(of=of_process)


def _some(numbers: dict[str, Capped], definition: str = "") -> list[Attention]:
    return [
        Attention(kind, numbers[name], definition)
        for name, kind in KINDS.items()
        if numbers.get(name)
    ]


def urgent(found: Iterable[Attention]) -> bool:
    """Whether any of it stands in red."""
    return any(need.kind.urgent for need in found)
