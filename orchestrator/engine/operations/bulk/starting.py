"""Start a bulk operation, or repeat one for the items that have failed again.

An action here only stores the operation. Workers gather its items and apply its action to them, in `bulk.slices`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.announcements import announce_bulk
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import Operation
from orchestrator.engine.operations.bulk.bulk_request import Wanted, pace_of
from orchestrator.engine.operations.bulk.controls import BulkControl, wake_bulk
from orchestrator.engine.operations.bulk.selection import (
    SELECTIONS,
    Found,
    failed_items,
)
from orchestrator.engine.operations.bulk.target_definitions import definitions_of_each
from orchestrator.engine.operations.registry import OPERATIONS, register
from orchestrator.engine.sql.batch import database_now
from orchestrator.exceptions import OperationRefused, PermissionMissing, StaleRevision
from orchestrator.models import BulkOperation
from orchestrator.models.bulk_operation import GOING_ON, HALTED
from orchestrator.text import Text, storable_text

CHANGED = Text(
    "What you may do has changed since the page was loaded: look at it again"
)

LOOKED_AT = 500
"""Rows whose definitions are checked before an operation with limits begins; workers check the others."""


class StartBulk(BulkControl):
    """Begins a bulk operation: workers freeze the shown rows as items, and apply the action to one after the other."""

    name = "start_bulk"
    label = _("Act on many")
    done = _("Begun.")

    def __call__(self, wanted: Wanted, *, request: ActionRequest) -> BulkOperation:
        """Store the operation, once for each key.

        Raises:
            OperationRefused: its selection is empty or without a condition, or the operator lacks the permission.
        """
        return _create(self, wanted, request)


class RepeatBulk(BulkControl):
    """Begins another operation with the same action, on the items that have failed again."""

    name = "repeat_bulk"
    label = _("Once more for those that failed")
    done = _("Begun.")
    text = _("Begins another operation on those that failed again, at the same pace.")
    icon = "retrying"

    def why_not(self, operation: BulkOperation) -> str:
        """Return why it is not possible now; "" if it is."""
        if operation.status in (*GOING_ON, *HALTED):
            return Text("Wait for the end of this operation, or cancel the rest")
        if operation.items_removed_at is not None:
            return Text("Its items were removed, as it ended long ago")
        return "" if operation.failed else Text("None of it has failed again")

    def __call__(self, pk: UUID, *, request: ActionRequest) -> BulkOperation:
        """Begin the other operation.

        Raises:
            OperationRefused: no item has failed again, the operation has not ended, or the operator lacks the
                permission.
        """
        before = BulkOperation.objects.filter(pk=pk).first()
        if before is None:
            raise OperationRefused("there is no bulk operation %(key)s", pk)
        wanted = Wanted(
            before.action,
            failed_items.name,
            {"operation": str(pk)},
            before.failed,
            database_now(),
            given=before.given,
            pace=pace_of(before),
        )
        return _create(self, wanted, request, before)


def moment_shown() -> datetime:
    """Return the moment at which a page shows a selection, by the database's clock."""
    return database_now()


def in_bulk() -> dict[str, Operation]:
    """Return the actions on many, by name."""
    return {name: one for name, one in OPERATIONS.items() if one.in_bulk}


def definitions_in_bulk(action: Operation, user: Any) -> frozenset[str] | None:
    """Return the definitions for which a user may request an action on many; None for all."""
    many, each = start_bulk.definitions(user), action.definitions(user)
    if many is None or each is None:
        return each if many is None else many
    return many & each


def forbidden_in_bulk(action: Operation, user: Any, definition: str = "") -> str:
    """Return why a user may not request an action on many; "" if they may.

    Args:
        action: the action.
        user: the user.
        definition: of all targets; "" for targets of several definitions, where permission for one is enough.
    """
    if definition:
        reason = start_bulk.forbidden(user, definition)
        return reason or action.forbidden(user, definition)
    mine = definitions_in_bulk(action, user)
    return "" if mine is None or mine else PermissionMissing().told


def limits(definitions: Iterable[str] | None) -> str:
    """Return definitions in the form of the page of a selection; "*" for None, which is all."""
    return "*" if definitions is None else ",".join(sorted(definitions))


def _create(
    control: StartBulk | RepeatBulk,
    wanted: Wanted,
    request: ActionRequest,
    before: BulkOperation | None = None,
) -> BulkOperation:
    def carry_out() -> dict[str, Any]:
        control._check_for_some(request)
        if before is not None:
            PermissionMissing.raise_for(repeat_bulk.forbidden_on(request.actor, before))
            OperationRefused.raise_for(repeat_bulk.why_not(before))
        definitions = _check(wanted, request)
        now = database_now()
        operation = _new_row(wanted, request, now, before, definitions)
        operation.save(force_insert=True)
        wake_bulk(operation, now)
        announce_bulk(operation)
        after = {"action": wanted.action, "about": wanted.about, "shown": wanted.shown}
        if definitions is not None:
            after["definitions"] = operation.definitions
        return {"bulk_id": operation.pk, "at": now, "after": after}

    about = {"about": dict(wanted.about)} if before is not None else {}
    control._carry_out_once(request, carry_out, about)
    return BulkOperation.objects.get(key=request.key)


def _check(wanted: Wanted, request: ActionRequest) -> frozenset[str] | None:
    """Checks the action, the permission, the pace and the selection.

    Returns:
        The definitions to which the operation is limited; None for no limit.

    Raises:
        OperationRefused: one of them is not possible.
    """
    operation, selection = in_bulk().get(wanted.action), SELECTIONS[wanted.selection]
    if operation is None or selection.model not in (None, operation.model):
        raise OperationRefused(
            "%(action)s cannot be done to many at once", wanted.action
        )
    operation._check_request(request)
    PermissionMissing.raise_for(forbidden_in_bulk(operation, request.actor))
    definitions = definitions_in_bulk(operation, request.actor)
    if wanted.limits not in ("", limits(definitions)):
        raise StaleRevision(CHANGED)
    wanted.pace.check()
    _check_selection(wanted, operation, request.actor, definitions)
    return definitions


def _check_selection(
    wanted: Wanted, operation: Operation, actor: Any, definitions: frozenset[str] | None
) -> None:
    """Checks that the selection has a condition, and rows for which the operator has the permission."""
    selection = SELECTIONS[wanted.selection]
    if not selection.narrows(wanted.about):
        raise OperationRefused(
            Text("Say which first: an operation on everything is not begun")
        )
    size = 1 if definitions is None else LOOKED_AT
    first = selection.chunk(wanted.about, wanted.shown_at, "", size)
    if definitions is not None and first.found and not first.after:
        _check_some(operation, first.found, actor)
    if not wanted.shown or not (first.found or first.after):
        raise OperationRefused(Text("Nothing matches: look at the list again"))


def _check_some(operation: Operation, found: Sequence[Found], actor: Any) -> None:
    """Checks that the operator has the permission for at least one row.

    Raises:
        PermissionMissing: with the first reason.
    """
    names = definitions_of_each(operation.model, [one.target for one in found])
    reasons = [
        forbidden_in_bulk(operation, actor, name) if name else PermissionMissing().told
        for name in sorted(set(names.values()))
    ]
    if reasons and all(reasons):
        raise PermissionMissing(reasons[0])


def _new_row(
    wanted: Wanted,
    request: ActionRequest,
    now: datetime,
    before: BulkOperation | None,
    definitions: frozenset[str] | None,
) -> BulkOperation:
    return BulkOperation(
        key=request.key,
        action=wanted.action,
        given=list(wanted.given),
        actor=request.actor,
        actor_name=request.actor_name,
        address=request.address,
        reason=storable_text(request.reason),
        again_of=before,
        selection=wanted.selection,
        about=dict(wanted.about),
        definitions=None if definitions is None else sorted(definitions),
        shown=wanted.shown,
        exact=wanted.exact,
        shown_at=min(wanted.shown_at, now),
        **{**asdict(wanted.pace), "samples": list(wanted.pace.samples)},
        wake_at=now,
        created_at=now,
        changed_at=now,
    )


start_bulk = register(StartBulk())
repeat_bulk = register(RepeatBulk())
