"""What was done today and yesterday, counted, and whose names the audit has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from monitoring.queries.audit.filters import SPANS, AuditFilters, span_of
from monitoring.queries.audit.words import action_word
from monitoring.queries.counts import Capped, grouped
from monitoring.queries.distinct import different
from orchestrator.models import (
    OperatorAction,
)

FEW = 100
"""Actions of one name and day that are counted."""

PEOPLE = 200
"""Names that are offered to choose from."""


@dataclass(frozen=True)
class Tally:
    """What was done in one span of time: each action with its number and where it is listed."""

    when: str
    word: Any
    actions: list[tuple[str, Capped, str]] = field(default_factory=list)


def tallies() -> list[Tally]:
    """What was done today and yesterday."""
    names = different(OperatorAction, "action", PEOPLE)
    found = []
    for when in ("today", "yesterday"):
        since, until = span_of(when)
        span = OperatorAction.objects.filter(at__gte=since, at__lt=until)
        parts = [span.filter(action=name).order_by("-at", "-pk") for name in names]
        numbers = [
            (
                action_word(name),
                Capped(number, FEW),
                AuditFilters(action=name, when=when).address(),
            )
            for name, number in grouped(parts, "action", cap=FEW)
        ]
        found.append(Tally(when, SPANS[when], sorted(numbers)))
    return found


def people() -> list[str]:
    """Whose names the audit has."""
    return different(OperatorAction, "actor_name", PEOPLE)
