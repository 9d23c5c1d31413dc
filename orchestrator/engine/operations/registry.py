"""All operator actions by name, and which of them can be done to a process or an event now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar
from uuid import UUID

from orchestrator.engine.operations.base import Operation
from orchestrator.engine.operations.event import EventOperation
from orchestrator.engine.operations.process import (
    Circumstances,
    ProcessFacts,
    ProcessOperation,
)
from orchestrator.models import ProcessInstance

AnyOperation = TypeVar("AnyOperation", bound=Operation)

OPERATIONS: dict[str, Operation] = {}
"""All operator actions, by name, in the order in which their buttons stand."""


def register(operation: AnyOperation) -> AnyOperation:
    """Make an action known to the permissions, the console and the admin.

    Raises:
        ValueError: another action has its name.
    """
    if operation.name in OPERATIONS:
        raise ValueError(f"there is already an operation {operation.name}")
    OPERATIONS[operation.name] = operation
    ordered = sorted(OPERATIONS.items(), key=lambda item: (item[1].rank, item[0]))
    OPERATIONS.clear()
    OPERATIONS.update(ordered)
    return operation


def on_processes() -> dict[str, ProcessOperation]:
    """Return the actions on processes, by name."""
    return _of(ProcessOperation)


def on_events() -> dict[str, EventOperation]:
    """Return the actions on events, by name."""
    return _of(EventOperation)


def _of(kind: type[Any]) -> dict[str, Any]:
    return {name: one for name, one in OPERATIONS.items() if isinstance(one, kind)}


def refusals(
    processes: Iterable[ProcessInstance], user: Any
) -> dict[UUID, dict[str, str]]:
    """Return for each process why a user cannot request each action now; "" where they can.

    One query reads each fact of all processes together.
    """
    return {
        process.instance.pk: refusals_of(process, user)
        for process in ProcessFacts(processes).each()
    }


def refusals_of(process: Circumstances, user: Any) -> dict[str, str]:
    """Return why a user cannot request each action on one process now; "" where they can."""
    return {
        name: operation.refusal(user, process)
        for name, operation in on_processes().items()
    }
