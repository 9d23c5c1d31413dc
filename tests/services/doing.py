"""What tests of the engine do again and again: press what operators press, be refused, read anew, fail."""

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import pytest
from django.db.models import Model

from orchestrator.exceptions import OperationRefused
from tests.services.asking import asked

Row = TypeVar("Row", bound=Model)
Operation = Callable[..., Any]


def fresh(row: Row) -> Row:
    """Return a row as it stands now."""
    row.refresh_from_db()
    return row


def did(operation: Operation, target: Model, *given: Any, **request: Any) -> Any:
    """Have the operator do something with a row, which is read anew afterwards; return the action."""
    action: Any = operation(target.pk, *given, request=asked(**request))
    target.refresh_from_db()
    return action


def refused(
    why: str,
    operation: Operation,
    target: Any,
    *given: Any,
    error: type[Exception] = OperationRefused,
    **request: Any,
) -> None:
    """Have the operator do what is refused for this reason, if one is given, with a row or with what has this id."""
    pk = target.pk if isinstance(target, Model) else target
    with pytest.raises(error, match=why or None):
        operation(pk, *given, request=asked(**request))


def raising(error: Exception) -> Callable[[object], NoReturn]:
    """Return a handler that fails."""

    def fail(command: object) -> NoReturn:
        raise error

    return fail


def taking(command: object) -> None:
    """Handles a command without doing anything."""
