"""The only function that jobs in Redis may name."""

from __future__ import annotations

from orchestrator.workers.current_worker import current


def answer(queue: str) -> None:
    """Answer a doorbell: run the queue's ready work until none is left or the time slice ends."""
    current().drain(queue)
