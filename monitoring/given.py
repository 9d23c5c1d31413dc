"""What a form gives an action, with what the page had masked in it as it is stored."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from monitoring.masking import locked, names_of, sees_data
from monitoring.queries.instance.repair import with_secrets_of_draft
from monitoring.queries.processes import processes
from orchestrator.engine.operations import Operation
from orchestrator.exceptions import PermissionMissing

REPAIRS = ("repair", "propose_repair")


def with_secrets_in(
    operation: Operation, pk: Any, given: list[Any], user: Any
) -> tuple[list[Any], str]:
    """Puts what is secret back into what a form gives.

    Args:
        operation: the action.
        pk: what it is done to.
        given: what it is told, in its order.
        user: who wants it.

    Returns:
        What it is told then, and why it cannot be done; "" if it can.

    Raises:
        PermissionMissing: the person may not see what they would say.
    """
    if operation.name in REPAIRS:
        edits, why = with_secrets_of_draft(pk, given[0], user)
        return [edits, *given[1:]], why
    if operation.name == "restart":
        if not sees_data(user):
            raise PermissionMissing
        return [_input(pk, given[0]), *given[1:]], ""
    return given, ""


def _input(pk: UUID, given: Any) -> Any:
    """The input of a new process: what is masked in it is that of the old one. Another value tells nothing of that."""
    old = processes().get(pk=pk)
    return locked(given, old.data, names_of(old.definition), may=True)[0]
