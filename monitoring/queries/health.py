"""What every page says about the machinery: things that need a person, workers, queues, the sweep."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Max, Q
from django.utils import timezone

from monitoring.queries.counts import FEW, MANY, Capped, capped
from monitoring.queries.decisions import number_asked
from orchestrator.models import (
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepRun,
    Worker,
)
from orchestrator.models.worker import lately


@dataclass(frozen=True)
class Health:
    """Counts for the navigation and its footer."""

    live: Capped
    failures: Capped
    events: Capped
    decisions: Capped
    workers: int
    queue: Capped
    swept_at: datetime | None

    @property
    def unattended(self) -> bool:
        """Nobody is there to do any work."""
        return self.workers == 0


def health() -> Health:
    """The state of things now; a handful of bounded counts along partial indexes."""
    now = timezone.now()
    alive = Count("id", filter=Q(seen_at__gte=lately(now)))
    workers = Worker.objects.aggregate(alive=alive, swept_at=Max("swept_at"))
    due = [
        capped(model.objects.filter(wake_at__lte=now)).number
        for model in (InboxEvent, IssuedCommand, StepRun)
    ]
    return Health(
        live=capped(ProcessInstance.objects.live(), MANY),
        failures=capped(Incident.objects.open()),
        events=capped(InboxEvent.objects.needing_a_person()),
        decisions=number_asked(),
        workers=workers["alive"],
        queue=Capped(min(sum(due), FEW), FEW),
        swept_at=workers["swept_at"],
    )
