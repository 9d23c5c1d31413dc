"""The plans that workflows make of their inputs, as far as this process of the system keeps them.

A plan belongs to its input: the functions and policies of its steps may depend on that, which neither the graph nor its
fingerprint tells.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from orchestrator.collecting import Latest
from orchestrator.definition import Workflow
from orchestrator.definition.workflow.plan import Plan

BYTES = 100_000_000
"""How much memory the plans take in all, about. The one used last is kept whatever it takes."""

STEP_BYTES, LINK_BYTES = 2_000, 450
"""What a plan takes for each step and for each link, as measured."""

PROCESSES = 20_000
"""Of how many processes is known which input they have."""

Began = tuple[UUID, datetime, int]
"""Which process: its id, when it began, and the key of the definition that it is on."""

Made = tuple[type[Workflow], str]
"""What a plan was made of: the class, and the checksum of the input."""


class Plans(Latest[Made, Plan]):
    """Plans by what they were made of, and the checksums of processes' inputs.

    The input of a process is read for its checksum once, not at each step.
    """

    def __init__(self, room: int = BYTES, processes: int = PROCESSES) -> None:
        super().__init__(room, size)
        self.checksums = Latest[Began, str](processes)

    def clear(self) -> None:
        super().clear()
        self.checksums.clear()


def size(plan: Plan) -> int:
    """About how many bytes a plan takes in memory."""
    return STEP_BYTES * len(plan.vertices) + LINK_BYTES * len(plan.links)
