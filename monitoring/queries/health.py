"""What every page says about the machinery: things that need a person, workers, queues, the sweep."""

from dataclasses import dataclass

from monitoring.queries.bulk import number_going_on
from monitoring.queries.counts import MANY, Capped, capped
from monitoring.queries.decisions import number_asked
from monitoring.queries.failures import number_open
from monitoring.queries.instances import Filters
from monitoring.queries.machinery import Machinery, machinery
from orchestrator.models import InboxEvent

LIVE = Filters(status="live")
"""What the menu's entry for processes opens."""


@dataclass(frozen=True)
class Health:
    """Counts for the navigation and its footer, each of the very list that its entry opens; and who does the work."""

    live: Capped
    failures: Capped
    events: Capped
    decisions: Capped
    operations: Capped
    machinery: Machinery

    @property
    def unattended(self) -> bool:
        """Nobody is there to do any work."""
        return self.machinery.workers == 0

    @property
    def served(self) -> bool:
        """Whatever is due has somebody who does it."""
        return not self.unattended and not self.machinery.unserved


def health() -> Health:
    """The state of things now; a handful of bounded counts along partial indexes."""
    return Health(
        live=capped(LIVE.applied(), MANY),
        failures=number_open(),
        events=capped(InboxEvent.objects.needing_a_person()),
        decisions=number_asked(),
        operations=number_going_on(),
        machinery=machinery(),
    )
