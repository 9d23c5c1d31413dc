"""The arguments of an action from a form, with masks replaced by the stored secrets."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from monitoring.base.masking import merge_secrets, names_of, sees_data
from monitoring.process.repair import restore_draft_secrets
from monitoring.queries.processes import process_rows
from orchestrator.engine.operations import Operation
from orchestrator.exceptions import PermissionMissing

REPAIRS = ("repair", "propose_repair")


def restore_stored_secrets(
    operation: Operation, pk: Any, given: list[Any], user: Any
) -> tuple[list[Any], str]:
    """Replace masks in the arguments of an action by the stored secrets.

    Args:
        operation: the action.
        pk: of its target.
        given: its arguments, in its order.
        user: who acts.

    Returns:
        The arguments, and the reason why it cannot be done; "" if it can.

    Raises:
        PermissionMissing: the user may not see the data that they would give.
    """
    if operation.name in REPAIRS:
        edits, why = restore_draft_secrets(pk, given[0], user)
        return [edits, *given[1:]], why
    if operation.name == "restart":
        if not sees_data(user):
            raise PermissionMissing
        return [_restart_input(pk, given[0]), *given[1:]], ""
    return given, ""


def _restart_input(pk: UUID, given: Any) -> Any:
    """Return the input of a new process, with masks replaced by the secrets of the old one."""
    old = process_rows().get(pk=pk)
    return merge_secrets(given, old.data, names_of(old.definition), may=True)[0]
