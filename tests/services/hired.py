"""Workers that are in the table, and nowhere else."""

from datetime import timedelta

from django.utils import timezone

from orchestrator.models import Worker


def hire(queue: str = "default", seconds_ago: float = 0) -> None:
    """Have a worker in the table that was heard of so long ago."""
    now = timezone.now()
    Worker.objects.create(
        id=f"{queue}-{seconds_ago}",
        supervisor="one",
        host="here",
        pid=1,
        queue=queue,
        started_at=now - timedelta(hours=1),
        seen_at=now - timedelta(seconds=seconds_ago),
        swept_at=now - timedelta(seconds=2),
    )


def hire_for_long() -> None:
    """Have a worker in the table that lives for as long as a test can take, however busy the machine is."""
    hire()
    later = timezone.now() + timedelta(hours=1)
    Worker.objects.update(seen_at=later, swept_at=later)
