"""Beginning a bulk operation: one action on many; and once more, on what has failed again.

What is pressed here only says what is to be done. Workers gather the items and do it, in `engine.bulk`.
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
from orchestrator.engine.operations.belonging import definitions_of_each
from orchestrator.engine.operations.bulk_controls import BulkControl, wake
from orchestrator.engine.operations.registry import OPERATIONS, register
from orchestrator.engine.operations.selection import (
    SELECTIONS,
    Found,
    failed_items,
)
from orchestrator.engine.operations.wanted import Wanted, pace_of
from orchestrator.engine.storage.batch import database_now
from orchestrator.exceptions import (
    OperationRefused,
    PermissionMissing,
    StaleRevision,
)
from orchestrator.models import BulkOperation
from orchestrator.models.bulk_operation import GOING_ON, HALTED
from orchestrator.text import Text, storable_text

LOOKED_AT = 500
"""Rows that are looked at before it is begun, where it is limited to some definitions: more are found as it goes."""


class StartBulk(BulkControl):
    """Begins a bulk operation: what was shown is frozen first, and then done to one after the other."""

    name = "start_bulk"
    label = _("Act on many")
    done = _("Begun.")

    def __call__(self, wanted: Wanted, *, request: ActionRequest) -> BulkOperation:
        """Stores what is wanted, once for each key.

        Raises:
            OperationRefused: it would be on everything or on nothing, or the operator may not.
        """
        return _created(self, wanted, request)


class RepeatBulk(BulkControl):
    """The same action once more, on what has failed again: an operation of its own."""

    name = "repeat_bulk"
    label = _("Once more for those that failed")
    done = _("Begun.")
    text = _("Begins another operation on those that failed again, at the same pace.")
    icon = "retrying"

    def why_not(self, operation: BulkOperation) -> str:
        """Why it cannot be done now; "" if it can."""
        if operation.status in (*GOING_ON, *HALTED):
            return Text("Wait for the end of this operation, or cancel the rest")
        if operation.items_removed_at is not None:
            return Text("Its items were removed, as it ended long ago")
        return "" if operation.failed else Text("None of it has failed again")

    def __call__(self, pk: UUID, *, request: ActionRequest) -> BulkOperation:
        """Begins it.

        Raises:
            OperationRefused: nothing has failed again, it has not ended, or the operator may not.
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
        return _created(self, wanted, request, before)


def moment_shown() -> datetime:
    """The moment of a page that shows what is to be frozen, by the database's clock."""
    return database_now()


def in_bulk() -> dict[str, Operation]:
    """The actions that can be done to many, by name."""
    return {name: one for name, one in OPERATIONS.items() if one.in_bulk}


def definitions_in_bulk(action: Operation, user: Any) -> frozenset[str] | None:
    """The definitions for which a user may do an action to many; None for all that there are."""
    many, each = start_bulk.definitions(user), action.definitions(user)
    if many is None or each is None:
        return each if many is None else many
    return many & each


def forbidden_in_bulk(action: Operation, user: Any, definition: str = "") -> str:
    """Why a user may not do an action to many; "" if they may.

    Args:
        action: which.
        user: who would.
        definition: of all of them; "" where they may be of several: then it is enough to be allowed for one.
    """
    if definition:
        reason = start_bulk.forbidden(user, definition)
        return reason or action.forbidden(user, definition)
    mine = definitions_in_bulk(action, user)
    return "" if mine is None or mine else PermissionMissing().told


def limits(definitions: Iterable[str] | None) -> str:
    """Definitions as a page says them which shows what an operation would be on; None is "*", all that there are."""
    return "*" if definitions is None else ",".join(sorted(definitions))


def _created(
    control: StartBulk | RepeatBulk,
    wanted: Wanted,
    request: ActionRequest,
    before: BulkOperation | None = None,
) -> BulkOperation:
    def carry_out() -> dict[str, Any]:
        control._check_somewhere(request)
        if before is not None:
            PermissionMissing.raise_for(repeat_bulk.forbidden_on(request.actor, before))
            OperationRefused.raise_for(repeat_bulk.why_not(before))
        definitions = _check(wanted, request)
        now = database_now()
        operation = _new(wanted, request, now, before, definitions)
        operation.save(force_insert=True)
        wake(operation, now)
        announce_bulk(operation)
        after = {"action": wanted.action, "about": wanted.about, "shown": wanted.shown}
        if definitions is not None:
            after["definitions"] = operation.definitions
        return {"bulk_id": operation.pk, "at": now, "after": after}

    about = {"about": dict(wanted.about)} if before is not None else {}
    control._audited(request, carry_out, about)
    return BulkOperation.objects.get(key=request.key)


def _check(wanted: Wanted, request: ActionRequest) -> frozenset[str] | None:
    """Refuses what is on everything, on nothing, or cannot be done to many.

    Returns:
        The definitions that it is limited to; None for no limit.

    Raises:
        OperationRefused: with what to do about it.
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
        raise StaleRevision(
            Text(
                "What you may do has changed since the page was loaded: look at it again"
            )
        )
    wanted.pace.check()
    if not selection.narrows(wanted.about):
        raise OperationRefused(
            Text("Say which first: an operation on everything is not begun")
        )
    size = 1 if definitions is None else LOOKED_AT
    first = selection.chunk(wanted.about, wanted.shown_at, "", size)
    if definitions is not None and first.found and not first.after:
        _check_some(operation, first.found, request.actor)
    if not wanted.shown or not (first.found or first.after):
        raise OperationRefused(Text("Nothing matches: look at the list again"))
    return definitions


def _check_some(operation: Operation, found: Sequence[Found], actor: Any) -> None:
    """Refuses what the operator may do to none of it.

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


def _new(
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
