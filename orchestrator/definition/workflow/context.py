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
    """The final failure of a step, for the step that catches it. `child` is the failure in its sub-process."""

    step: str
    type: str
    message: str
    attempts: int
    child: ChildFailure | None = None


class AttemptContext(ABC):
    """The base of both kinds of context.

    Attributes:
        process_id: the process.
        step: the name of the step.
        attempt: the number of the attempt, from 1.
        visit: the round of the loop, from 1.
        idempotency_key: a text that is equal in all attempts of this visit. Pass it to external systems.
        deadline: the time at which this attempt is stopped.
        saved: the data that an earlier attempt has saved; None without any.
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
        """Report the progress of the step, which is also a heartbeat. Frequent calls are cheap.

        Args:
            done: the amount of finished work. If it is no finite number, the report is a heartbeat alone.
            total: the amount of all work; None if unknown, as one that is no finite number.
            message: a text for operators; whatever is in it, it does not fail the step.
        """


class StepContext(AttemptContext):
    """The context of a plain step function: declare a parameter of this type to get it."""

    @abstractmethod
    def save(self, data: Any) -> None:
        """Store a checkpoint inside the step. The next attempt finds it in `saved`.

        Raises:
            InvalidMessage: the data cannot be written as JSON, or is too large.
            LeaseLost: another worker has taken the step over.
        """

    @abstractmethod
    def still_mine(self) -> bool:
        """Return whether this attempt still holds the step. Call it before an irreversible effect."""


class AsyncStepContext(AttemptContext):
    """The context of an `async def` step function: declare a parameter of this type to get it."""

    @abstractmethod
    async def save(self, data: Any) -> None:
        """Store a checkpoint inside the step, as `StepContext.save` does."""

    @abstractmethod
    async def still_mine(self) -> bool:
        """Return whether this attempt still holds the step. Call it before an irreversible effect."""
