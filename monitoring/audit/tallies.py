"""The numbers of actions of today and yesterday, and the names of people in the audit."""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from monitoring.audit.filters import SPANS, AuditFilters, named_span
from monitoring.audit.words import action_word
from monitoring.queries.counts import Capped, count_by
from monitoring.queries.distinct_values import distinct_values
from orchestrator.models import OperatorAction

FEW = 100
"""The maximum count of actions of one name and day."""

PEOPLE = 200
"""The maximum number of offered names."""

BY_WORD = itemgetter(0, 2)
"""The order of a day's actions: by label, then by address, since two actions can have one label."""


@dataclass(frozen=True)
class ActionTally:
    """The actions of one span of time, each with its number and the address of its list."""

    when: str
    word: Any
    actions: list[tuple[str, Capped, str]] = field(default_factory=list)


def action_tallies() -> list[ActionTally]:
    """Return the numbers of actions of today and yesterday."""
    names = distinct_values(OperatorAction, "action", PEOPLE)
    found = []
    for when in ("today", "yesterday"):
        since, until = named_span(when)
        span = OperatorAction.objects.filter(at__gte=since, at__lt=until)
        parts = [span.filter(action=name).order_by("-at", "-pk") for name in names]
        numbers = [
            (
                action_word(name),
                Capped(number, FEW),
                AuditFilters(action=name, when=when).address(),
            )
            for name, number in count_by(parts, "action", cap=FEW)
        ]
        found.append(ActionTally(when, SPANS[when], sorted(numbers, key=BY_WORD)))
    return found


def actor_names() -> list[str]:
    """Return the names of people in the audit."""
    return distinct_values(OperatorAction, "actor_name", PEOPLE)
