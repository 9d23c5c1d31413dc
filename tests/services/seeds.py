"""Processes for tests that need many: recorded once a run, since that takes some seconds."""

from functools import cache

from bench.seed.recording import Recording, recordings


@cache
def recorded() -> tuple[Recording, ...]:
    """Return what the seeding copies."""
    return tuple(recordings())
