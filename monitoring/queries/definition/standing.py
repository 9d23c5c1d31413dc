"""How many processes of one stored definition are in which step now, by what they do there.

Found by step, along the index of open visits: a step in which a hundred thousand wait hides none of the few in another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import F, QuerySet

from monitoring.queries.counts import CAP, MARK, ForEach, Part, grouped
from monitoring.queries.doing import NOW, doing_now, open_visits
from orchestrator.models import Definition, StepRun

LOOKED_AT = 500
"""Open visits of one step that are looked at."""

EACH = 60
"""Steps of a graph above which the visits of all steps are looked at together."""


def _nothing() -> dict[str, int]:
    return dict.fromkeys(NOW, 0)


@dataclass
class StepCounts:
    """Numbers of processes by step, and by what they do there.

    Args:
        steps: those of each step that has any.
        unsure: the steps of which there may be more.
    """

    steps: dict[str, dict[str, int]] = field(
        default_factory=lambda: defaultdict(_nothing)
    )
    unsure: set[str] = field(default_factory=set)

    def number(self, step: str, doing: str = "") -> int:
        """How many do that in a step; without it how many are in it."""
        found = self.steps.get(step, {})
        return found.get(doing, 0) if doing else sum(found.values())


def _in_each_step() -> QuerySet[StepRun]:
    """The open visits of a step."""
    # A range of one, or PostgreSQL would not go by the index for the order alone.
    rows = open_visits().filter(node__range=(MARK, MARK))
    return _with_what_is_done(rows.order_by("node", "-instance_id"))


def _with_what_is_done(runs: QuerySet[StepRun]) -> QuerySet[StepRun]:
    """The same with what each does, and of which definition: others may have steps of the same name."""
    return runs.annotate(of=F("instance__definition"), doing=doing_now())


def standing(definition: Definition, steps: Sequence[str]) -> StepCounts:
    """The processes of a definition's row in these steps, which are those of its graph."""
    together = len(steps) > EACH
    cap = CAP if together else LOOKED_AT
    if together:
        rows: Part = _with_what_is_done(open_visits().filter(node__in=steps).order_by())
    else:
        rows = ForEach(_in_each_step, steps, alike=True)
    found, looked_at = StepCounts(), Counter[str]()
    for step, of, doing, number in grouped(rows, "node", "of", "doing", cap=cap):
        looked_at[step] += number
        if of == definition.pk:
            found.steps[step][doing] += number
    if not together:
        found.unsure = {step for step, number in looked_at.items() if number >= cap}
    elif looked_at.total() >= cap:
        found.unsure = set(steps)
    return found
