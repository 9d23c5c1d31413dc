"""The counts of the menu and the state of workers, queues and the sweep, for every page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from monitoring.lists.bulk.bulk import NEWEST
from monitoring.lists.failures.failures import count_open_failures
from monitoring.lists.processes.filters import Filters
from monitoring.lists.waits.decisions import open_questions
from monitoring.lists.waits.filters import WaitFilters
from monitoring.probes.machinery import Machinery, machinery
from monitoring.queries.counts import MANY, Capped, count_each, fixed_query
from orchestrator.models import BulkOperation, InboxEvent

LIVE = Filters(status="live")
"""The list that the menu's entry for processes opens."""

COUNTED: dict[str, Callable[[], QuerySet[Any]]] = {
    "live": LIVE.applied,
    "waits": WaitFilters().rows_to_count,
    "events": InboxEvent.objects.needing_a_person,
    "decisions": open_questions,
    "operations": BulkOperation.objects.open,
}
"""The queries of the lists that the menu opens; they never change."""


@dataclass(frozen=True)
class Health:
    """The number of rows of each list that the menu opens, and the state of workers and queues."""

    live: Capped
    waits: Capped
    failures: Capped
    events: Capped
    decisions: Capped
    operations: Capped
    machinery: Machinery

    @property
    def unattended(self) -> bool:
        """Whether no worker lives."""
        return self.machinery.workers == 0


def health() -> Health:
    """Return the current counts and states, from bounded counts along partial indexes."""
    parts = {name: fixed_query(rows) for name, rows in COUNTED.items()}
    numbers = count_each(parts, {"live": MANY, "operations": NEWEST})
    return Health(**numbers, failures=count_open_failures(), machinery=machinery())
