"""The plans that workflows make of their inputs, as far as this process of the system keeps them.

A plan belongs to its input: the functions and policies of its steps may depend on that, which neither the graph nor its
fingerprint tells.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar
from uuid import UUID

from orchestrator.definition import Workflow
from orchestrator.definition.workflow.plan import Plan

BYTES = 100_000_000
"""How much memory the plans take in all, about. The one used last is kept whatever it takes."""

STEP_BYTES, LINK_BYTES = 2_000, 450
"""What a plan takes for each step and for each link, as measured."""

PROCESSES = 20_000
"""Of how many processes is known which input they have."""

Made = tuple[type[Workflow], str]
"""What a plan was made of: the class, and the checksum of the input."""

K = TypeVar("K")
V = TypeVar("V")


class _Latest(Generic[K, V]):
    """What was used last, as much of it as there is room for."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken = 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def keep(self, key: K, value: V, size: int) -> None:
        self.taken += size - self._kept.pop(key, (value, 0))[1]
        self._kept[key] = value, size
        while self.taken > self.room and len(self._kept) > 1:
            _, (_, freed) = self._kept.popitem(last=False)
            self.taken -= freed

    def clear(self) -> None:
        self._kept.clear()
        self.taken = 0


class Plans:
    """Plans by what they were made of, and the checksums of processes' inputs. Threads may share it."""

    def __init__(self, room: int = BYTES, processes: int = PROCESSES) -> None:
        self._plans = _Latest[Made, Plan](room)
        self._checksums = _Latest[UUID, str](processes)
        self._lock = Lock()

    def checksum_of(self, process: UUID) -> str | None:
        """The checksum of a process's input, if it was noted: the input is read for it once, not at each step."""
        with self._lock:
            return self._checksums.get(process)

    def note(self, process: UUID, checksum: str) -> None:
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
