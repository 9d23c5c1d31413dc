"""The counts of the menu, and workers, queues and the sweep, for every page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from monitoring.queries.bulk import LATELY
from monitoring.queries.counts import MANY, Capped, each_capped, once
from monitoring.queries.decisions import open_questions
from monitoring.queries.failures import number_open
from monitoring.queries.instances.filters import Filters
from monitoring.queries.machinery import Machinery, machinery
from monitoring.queries.waits.filters import WaitFilters
from orchestrator.models import BulkOperation, InboxEvent

LIVE = Filters(status="live")
"""The list that the menu's entry for processes opens."""

COUNTED: dict[str, Callable[[], QuerySet[Any]]] = {
    "live": LIVE.applied,
    "waits": WaitFilters().counted,
    "events": InboxEvent.objects.needing_a_person,
    "decisions": open_questions,
    "operations": BulkOperation.objects.open,
}
"""The lists that entries of the menu open and count; the queries never change."""


@dataclass(frozen=True)
class Health:
    """Counts for the menu, each of the list that its entry opens; and the state of workers and queues."""

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
    """Return the counts and states of now, by bounded counts along partial indexes."""
    parts = {name: once(rows) for name, rows in COUNTED.items()}
    numbers = each_capped(parts, {"live": MANY, "operations": LATELY})
    return Health(**numbers, failures=number_open(), machinery=machinery())
