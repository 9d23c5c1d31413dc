"""Processes for tests that need many: recorded once a run, since that takes some seconds."""

from functools import cache

from bench.seed import seeding
from bench.seed.recording import Recording, record, recordings
from orchestrator.models import Incident


@cache
def recorded() -> tuple[Recording, ...]:
    """Return what the seeding copies."""
    return tuple(recordings())


def seeded(number: int) -> str:
    """Fill the database with orders that failed for one cause, which is returned; none will go better now."""
    seeding.seed(number, list(record(["refused call"])))
    seeding.tidy()
    return str(Incident.objects.open().latest("pk").fingerprint)
