"""The context of a running step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class ChildFailure:
    """The failure in a sub-process, and its process id."""

    process_id: str
    step: str
    type: str
    message: str


@dataclass(frozen=True)
class Failure:
    """Why a step failed for good; the parameter of a step that catches it. `child` is there if it ran a sub-process."""

    step: str
    type: str
    message: str
    attempts: int
    child: ChildFailure | None = None


class AttemptContext(ABC):
    """What both kinds of context have in common.

    Attributes:
        process_id: the process.
        step: the name of the step.
        attempt: counted from 1.
        visit: the round of the loop, counted from 1.
        idempotency_key: a text, equal in every attempt of this visit: hand it to whatever has effects outside.
        deadline: when this attempt is stopped.
        saved: what an earlier attempt saved with `save`; None when none did.
    """

    process_id: UUID
    step: str
    attempt: int
    visit: int
    idempotency_key: str
    deadline: datetime
    saved: Any

    @abstractmethod
    def progress(
        self, done: float, total: float | None = None, message: str = ""
    ) -> None:
        """Shows the progress of the step, live, and counts as a heartbeat. Frequent calls are cheap."""


class StepContext(AttemptContext):
    """A step function gets it by declaring a parameter of this type."""

    @abstractmethod
    def save(self, data: Any) -> None:
        """Stores a checkpoint inside the step: the next attempt finds it in `saved`.

        Raises:
            InvalidMessage: the data cannot be written as JSON, or is too large.
            LeaseLost: another worker has taken the step over.
        """

    @abstractmethod
    def still_mine(self) -> bool:
        """Whether this attempt still holds the step. Call it before an irreversible effect."""


class AsyncStepContext(AttemptContext):
    """An asynchronous step function gets it by declaring a parameter of this type."""

    @abstractmethod
    async def save(self, data: Any) -> None:
        """Stores a checkpoint inside the step, as `StepContext.save` does."""

    @abstractmethod
    async def still_mine(self) -> bool:
        """Whether this attempt still holds the step. Call it before an irreversible effect."""
