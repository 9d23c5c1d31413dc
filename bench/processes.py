"""The definitions that worker programs of a measurement run; PROCESSION_APPS=bench names this package."""

from __future__ import annotations

import asyncio

from bench.chain import pass_on
from bench.run import QUEUE
from orchestrator.definition import Workflow, step, then


async def call_outside() -> None:
    """A short call that waits."""
    await asyncio.sleep(0.01)


class BenchErrand(Workflow):
    """A step that does nothing, a call that waits, and another step."""

    name = "bench-errand"
    queue = QUEUE
    flow = (then(step(pass_on, "first"), call_outside, step(pass_on, "last")),)
