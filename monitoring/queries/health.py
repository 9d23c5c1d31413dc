"""What every page says about the machinery: things that need a person, workers, queues, the sweep."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from monitoring.queries.bulk import LATELY
from monitoring.queries.counts import MANY, Capped, each_capped, once
from monitoring.queries.decisions import asked
from monitoring.queries.failures import number_open
from monitoring.queries.instances.filters import Filters
from monitoring.queries.machinery import Machinery, machinery
from monitoring.queries.waits.filters import WaitFilters
from orchestrator.models import BulkOperation, InboxEvent

LIVE = Filters(status="live")
"""What the menu's entry for processes opens."""

COUNTED: dict[str, Callable[[], QuerySet[Any]]] = {
    "live": LIVE.applied,
    "waits": WaitFilters().counted,
    "events": InboxEvent.objects.needing_a_person,
    "decisions": asked,
    "operations": BulkOperation.objects.open,
}
"""What the entries of the menu open, and say the number of; always the same queries."""


@dataclass(frozen=True)
class Health:
    """Counts for the navigation and its footer, each of the very list that its entry opens; and who does the work."""

    live: Capped
    waits: Capped
    failures: Capped
    events: Capped
    decisions: Capped
    operations: Capped
    machinery: Machinery

    @property
    def unattended(self) -> bool:
        """Nobody is there to do any work."""
        return self.machinery.workers == 0


def health() -> Health:
    """The state of things now; a handful of bounded counts along partial indexes."""
    parts = {name: once(rows) for name, rows in COUNTED.items()}
    numbers = each_capped(parts, {"live": MANY, "operations": LATELY})
    return Health(**numbers, failures=number_open(), machinery=machinery())
