"""Applying an action to one item, in the name of the person who began the operation; a repetition changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.db import Error as DatabaseError

from orchestrator.engine.change.incidents import named_error
from orchestrator.engine.operations import (
    OPERATIONS,
    definitions_in_bulk,
    definitions_of_each,
    forbidden_in_bulk,
)
from orchestrator.engine.operations.bulk.request import item_request
from orchestrator.engine.sql.connection import passes
from orchestrator.exceptions import OperationRefused, PermissionMissing, StaleRevision
from orchestrator.models import (
    BulkItem,
    BulkOperation,
    BulkVerdict,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
)
from orchestrator.text import Text

NO_DEFINITION = PermissionMissing().told
"""The refusal for an event without a definition."""


def actor_of(operation: BulkOperation) -> tuple[Any, str]:
    """Return the person who began the operation, and why it cannot continue in their name; "" if it can."""
    users = get_user_model()._default_manager
    actor = users.filter(pk__in=[operation.actor_id]).first()
    who = operation.actor_name
    if actor is None:
        return None, Text("%(who)s has no account any more", who)
    if not actor.is_active:
        return actor, Text("the account of %(who)s was closed", who)
    action = OPERATIONS.get(operation.action)
    if action is None:
        return actor, Text("the running code has no action %(name)s", operation.action)
    if forbidden_in_bulk(action, actor):
        return actor, Text("%(who)s may not do this any more", who)
    return actor, ""


def refuse_forbidden(
    operation: BulkOperation, items: Sequence[BulkItem], actor: Any
) -> list[BulkItem]:
    """Refuse the items for whose definitions the person has no permission any more. Return the others."""
    action = OPERATIONS[operation.action]
    if definitions_in_bulk(action, actor) is None:
        return list(items)
    names = definitions_of_each(action.model, [item.target for item in items])
    for item in items:
        name = names.get(item.target)
        if name is None:  # the target is gone; the press of the item says so
            continue
        if reason := forbidden_in_bulk(action, actor, name) if name else NO_DEFINITION:
            item.verdict = BulkVerdict.REFUSED
            item.say(reason)
    return [item for item in items if item.verdict == BulkVerdict.WAITING]


def press_item(operation: BulkOperation, item: BulkItem, actor: Any) -> None:
    """Apply the action to one item, and give the item its verdict, which the slice stores.

    Raises:
        DatabaseError: the database refused for now; the item waits for the next slice.
    """
    action: Any = OPERATIONS[operation.action]
    request = item_request(operation, item, actor)
    try:
        done = action(item.target, *operation.given, request=request)
    except OperationRefused as refused:
        changed = isinstance(refused, StaleRevision) or _has_changed(action, item)
        item.verdict = BulkVerdict.SKIPPED if changed else BulkVerdict.REFUSED
        item.say(refused.told)
    # An action of the project's own may raise anything; the other items continue.
    except BaseException as error:
        if isinstance(error, DatabaseError) and passes(error):
            raise
        item.verdict = BulkVerdict.REFUSED
        item.say(named_error(error))
    else:
        refused_before = done.result != OperatorAction.Result.DONE
        item.verdict = BulkVerdict.REFUSED if refused_before else BulkVerdict.TRIED
        item.say(done.said if refused_before else "")
        item.tried_at = done.at


def _has_changed(action: Any, item: BulkItem) -> bool:
    """Whether the target has changed since it was frozen, which explains a first or repeated refusal."""
    if item.event_id is not None:
        event = InboxEvent.objects.filter(pk=item.event_id).first()
        return event is None or bool(action.why_not(event))
    process = ProcessInstance.objects.filter(pk__in=[item.process_id])
    revision = process.values_list("revision", flat=True).first()
    return revision != item.revision
