"""The numbers of processes of one stored definition by step, and by their activity there.

Each step is read along the index of open visits: a hundred thousand waits in one step do not hide a few in another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import F, QuerySet

from monitoring.queries.activity import NOW, activity_now, open_visits
from monitoring.queries.counts import CAP, MARK, Capped, ForEach, RowQuery, count_by
from orchestrator.models import Definition, StepRun

LOOKED_AT = 500
"""The maximum number of open visits of one step to read."""

EACH = 60
"""The number of steps above which the visits of all steps are read together."""


def _no_activity() -> dict[str, int]:
    return dict.fromkeys(NOW, 0)


@dataclass
class StepCounts:
    """The numbers of processes by step, and by their activity there.

    Args:
        steps: of each step with processes.
        unsure: the steps that may have more.
    """

    steps: dict[str, dict[str, int]] = field(
        default_factory=lambda: defaultdict(_no_activity)
    )
    unsure: set[str] = field(default_factory=set)

    def number(self, step: str, doing: str = "") -> int:
        """Return the number of processes in a step, with one activity or with any."""
        found = self.steps.get(step, {})
        return found.get(doing, 0) if doing else sum(found.values())

    def capped(self, step: str) -> Capped:
        """Return the number of processes in a step, and whether there may be more."""
        return Capped.of(self.number(step), more=step in self.unsure)


def _visits_in_step() -> QuerySet[StepRun]:
    """Return the open visits of a step."""
    # A range of one value: PostgreSQL would not use the index for the order alone.
    rows = open_visits().filter(node__range=(MARK, MARK))
    return _with_activity(rows.order_by("node", "-process_started_at", "-instance"))


def _with_activity(runs: QuerySet[StepRun]) -> QuerySet[StepRun]:
    """Annotate visits with the activity and the definition: other definitions may have a step of the same name."""
    return runs.annotate(of=F("instance__definition"), doing=activity_now())


def step_counts(definition: Definition, steps: Sequence[str]) -> StepCounts:
    """Count the processes of a definition's row in the steps of its graph."""
    together = len(steps) > EACH
    cap = CAP if together else LOOKED_AT
    if together:
        rows: RowQuery = _with_activity(open_visits().filter(node__in=steps).order_by())
    else:
        rows = ForEach(_visits_in_step, steps, alike=True)
    found, looked_at = StepCounts(), Counter[str]()
    for step, of, doing, number in count_by(rows, "node", "of", "doing", cap=cap):
        looked_at[step] += number
        if of == definition.pk:
            found.steps[step][doing] += number
    if not together:
        found.unsure = {step for step, number in looked_at.items() if number >= cap}
    elif looked_at.total() >= cap:
        found.unsure = set(steps)
    return found
