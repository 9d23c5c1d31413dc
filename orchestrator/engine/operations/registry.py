"""All operator actions by name, and which of them can be done to a process or an event now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar
from uuid import UUID

from orchestrator.engine.operations.base import (
    EventOperation,
    Operation,
    ProcessOperation,
)
from orchestrator.engine.operations.circumstances import Circumstances, Processes
from orchestrator.models import ProcessInstance

AnyOperation = TypeVar("AnyOperation", bound=Operation)

OPERATIONS: dict[str, Operation] = {}
"""All operator actions, by name, in the order in which their buttons stand."""


def register(operation: AnyOperation) -> AnyOperation:
    """Makes an action known: to the permissions, the console and the admin.

    Raises:
        ValueError: there is one of that name.
    """
    if operation.name in OPERATIONS:
        raise ValueError(f"there is already an operation {operation.name}")
    OPERATIONS[operation.name] = operation
    ordered = sorted(OPERATIONS.items(), key=lambda item: (item[1].rank, item[0]))
    OPERATIONS.clear()
    OPERATIONS.update(ordered)
    return operation


def on_processes() -> dict[str, ProcessOperation]:
    """The actions on processes, by name."""
    return _of(ProcessOperation)


def on_events() -> dict[str, EventOperation]:
    """The actions on events, by name."""
    return _of(EventOperation)


def _of(kind: type[Any]) -> dict[str, Any]:
    return {name: one for name, one in OPERATIONS.items() if isinstance(one, kind)}


def refusals(
    processes: Iterable[ProcessInstance], user: Any
) -> dict[UUID, dict[str, str]]:
    """For each process why each action on it cannot be done now by a user; "" where it can.

    However many processes there are, each fact is asked of the tables once.
    """
    return {
        process.instance.pk: refusals_of(process, user)
        for process in Processes(processes).each()
    }


def refusals_of(process: Circumstances, user: Any) -> dict[str, str]:
    """The same for one process."""
    return {
        name: operation.refusal(user, process)
        for name, operation in on_processes().items()
    }
