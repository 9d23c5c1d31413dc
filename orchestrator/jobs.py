"""The one function that queue jobs may name."""

from __future__ import annotations

from orchestrator.workers.current import current


def answer(queue: str) -> None:
    """Answers a doorbell: runs the queue's ready work until none is left or the time slice ends."""
    current().drain(queue)
