"""How many processes of one stored definition are in which step now, by what they do there.

Found by step, along the index of open visits: a step in which a hundred thousand wait hides none of the few in another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import QuerySet

from monitoring.queries.counts import MANY, grouped
from monitoring.queries.doing import NOW, doing_now, open_visits
from orchestrator.models import Definition, StepRun

LOOKED_AT = 1_000
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


def standing(definition: Definition, steps: Sequence[str]) -> StepCounts:
    """The processes of a definition's row in these steps, which are those of its graph."""
    together = len(steps) > EACH
    parts = {"": _visits(steps)} if together else {one: _visits([one]) for one in steps}
    cap = MANY if together else LOOKED_AT
    looked_at: dict[str, int] = dict(grouped(parts.values(), "node", cap=cap))
    found = StepCounts()
    if not together:
        found.unsure = {step for step, number in looked_at.items() if number >= cap}
    elif sum(looked_at.values()) >= cap:
        found.unsure = set(steps)
    wanted = [runs for one, runs in parts.items() if together or one in looked_at]
    mine = (_of_definition(runs, definition, cap) for runs in wanted)
    for step, doing, number in grouped(mine, "node", "doing", cap=cap):
        found.steps[step][doing] += number
    return found


def _visits(steps: Sequence[str]) -> QuerySet[StepRun]:
    if len(steps) > 1:
        return open_visits().filter(node__in=steps).order_by()
    # A range of one, or PostgreSQL would not go by the index for the order alone.
    (step,) = steps
    return (
        open_visits().filter(node__range=(step, step)).order_by("node", "-instance_id")
    )


def _of_definition(
    runs: QuerySet[StepRun], definition: Definition, most: int
) -> QuerySet[StepRun]:
    """Those of the first so many that are of this definition: others may have steps of the same name."""
    known = StepRun.objects.filter(pk__in=runs.values("pk")[:most])
    mine = known.filter(instance__definition=definition.pk)
    return mine.annotate(doing=doing_now())
