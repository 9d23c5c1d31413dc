"""The signal that the engine sends after each commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from django.dispatch import Signal


@dataclass(frozen=True)
class Change:
    """One committed change.

    `steps` holds the statuses of the step runs it touched; `at` is seconds since the epoch, when it was committed. A
    change of the inbox alone has an empty `name`, and one of a bulk operation alone names that.
    """

    process_id: UUID | None
    name: str
    revision: int = 0
    status: str = ""
    steps: dict[str, str] = field(default_factory=dict)
    edge: str = ""
    at: float = 0.0
    bulk: UUID | None = None


committed = Signal()
"""Sent after each commit with `change: Change`. A receiver that raises is logged and changes nothing."""
