"""What every page says about the machinery: things that need a person, workers, queues, the sweep."""

from dataclasses import dataclass
from datetime import datetime

from monitoring.queries.counts import FEW, MANY, Capped, capped
from monitoring.queries.decisions import number_asked
from monitoring.queries.failures import number_open
from monitoring.queries.instances import Filters
from orchestrator.models import InboxEvent
from orchestrator.setup_status import due_by_queue, workers_by_queue

LIVE = Filters(status="live")
"""What the menu's entry for processes opens."""


@dataclass(frozen=True)
class Health:
    """Counts for the navigation and its footer, each of the very list that its entry opens; and who does the work.

    `unserved` are the queues that have due work, and no worker.
    """

    live: Capped
    failures: Capped
    events: Capped
    decisions: Capped
    workers: int
    queue: Capped
    swept_at: datetime | None
    unserved: tuple[str, ...] = ()

    @property
    def unattended(self) -> bool:
        """Nobody is there to do any work."""
        return self.workers == 0

    @property
    def served(self) -> bool:
        """Whatever is due has somebody who does it."""
        return not self.unattended and not self.unserved


def health() -> Health:
    """The state of things now; a handful of bounded counts along partial indexes."""
    workers, swept_at = workers_by_queue()
    due = due_by_queue(FEW)
    return Health(
        live=capped(LIVE.applied(), MANY),
        failures=number_open(),
        events=capped(InboxEvent.objects.needing_a_person()),
        decisions=number_asked(),
        workers=sum(workers.values()),
        queue=Capped(min(sum(due.values()), FEW), FEW),
        swept_at=swept_at,
        unserved=tuple(sorted(due.keys() - workers.keys())),
    )
