"""The plans that workflows make of their inputs, as far as this process of the system keeps them.

A plan belongs to its input: the functions and policies of its steps may depend on that, which neither the graph nor its
fingerprint tells.
"""

from __future__ import annotations

from datetime import datetime
from threading import Lock
from uuid import UUID

from orchestrator.definition import Workflow
from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.storage.latest import Latest

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


class Plans:
    """Plans by what they were made of, and the checksums of processes' inputs. Threads may share it."""

    def __init__(self, room: int = BYTES, processes: int = PROCESSES) -> None:
        self._plans = Latest[Made, Plan](room)
        self._checksums = Latest[Began, str](processes)
        self._lock = Lock()

    def checksum_of(self, process: Began) -> str | None:
        """The checksum of a process's input, if it was noted: the input is read for it once, not at each step."""
        with self._lock:
            return self._checksums.get(process)

    def note(self, process: Began, checksum: str) -> None:
        """Notes the checksum of a process's input."""
        with self._lock:
            self._checksums.keep(process, checksum, 1)

    def get(self, made: Made) -> Plan | None:
        """The plan that was made of this, if it is still kept."""
        with self._lock:
            return self._plans.get(made)

    def keep(self, made: Made, plan: Plan) -> None:
        """Keeps a plan, and drops others that were not used for long."""
        with self._lock:
            self._plans.keep(made, plan, size(plan))

    def clear(self) -> None:
        """Drops everything."""
        with self._lock:
            self._plans.clear()
            self._checksums.clear()


def size(plan: Plan) -> int:
    """About how many bytes a plan takes in memory."""
    return STEP_BYTES * len(plan.vertices) + LINK_BYTES * len(plan.links)
