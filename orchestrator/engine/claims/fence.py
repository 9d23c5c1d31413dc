"""The condition that a worker still holds its work: every write that settles work carries it."""

from __future__ import annotations

from typing import Any

from orchestrator.models import Work


def fence(work: Work) -> dict[str, Any]:
    """The condition that this attempt still holds the work."""
    return {"id": work.pk, "owner": work.owner, "attempt": work.attempt}
