"""The engine's settings, from `settings.PROCESSION`, each with its default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings


@dataclass(frozen=True)
class Conf:
    """Times are in seconds."""

    LEASE_SECONDS: float = 10
    """How long claimed work is left alone before another worker may take it."""
    HEARTBEAT_SECONDS: float = 3
    """How often a supervisor renews its workers' leases."""
    SWEEP_SECONDS: float = 1
    """How often a supervisor looks for due work that no bell announced."""
    POLL_SECONDS: float = 0.2
    """How often a worker looks for work while Redis is away."""
    SLICE_SECONDS: float = 5
    """How long one bell keeps a worker busy before it rings again."""
    PATIENCE_SECONDS: float = 60
    """How long an event may wait for its step or its process before people are told."""
    EVENT_ATTEMPTS: int = 5
    """How often an event is tried before it is an incident."""
    EVENT_TIMEOUT: float = 30
    """How long one event's transaction may take before its worker is killed."""
    BACKOFF_SECONDS: float = 1
    """The first delay before another attempt; it doubles each time."""
    BACKOFF_CAP_SECONDS: float = 300
    """The longest delay between attempts."""
    TRANSITIONS_LIMIT: int = 100_000
    """How many transitions one process may make; the next one is an incident."""


def conf() -> Conf:
    """The settings in force.

    Raises:
        TypeError: settings.PROCESSION has a key that does not exist.
    """
    given: dict[str, Any] = getattr(settings, "PROCESSION", {})
    return Conf(**given)
