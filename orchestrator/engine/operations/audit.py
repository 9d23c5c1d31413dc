"""The audit of operator actions: each is carried out once, with one row, also when it is refused.

The effect and its row are one transaction. Pressing twice, or sending the same request again, gives the first answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction
from django.utils.crypto import salted_hmac

from orchestrator.engine.storage.batch import database_now
from orchestrator.exceptions import (
    OperationRefused,
    PermissionMissing,
    StaleRevision,
)
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
)
from orchestrator.text import Text, pack_text, storable_text

TOLD_APART = {kind.__name__: kind for kind in (PermissionMissing, StaleRevision)}
"""Refusals that callers tell apart. The row keeps the kind, so that the same request gets the same answer again."""


@dataclass(frozen=True)
class ActionRequest:
    """The actor, the reason, and the revision that the page showed.

    The page makes the key; a request with the same key gets the first answer. `way` says how the request came, if not
    by the console; `bulk` is the bulk operation that it belongs to.
    """

    actor: Any
    key: UUID
    reason: str = ""
    expected_revision: int | None = None
    address: str | None = None
    way: str = ""
    bulk: UUID | None = None

    @property
    def actor_name(self) -> str:
        """The actor as rows name them."""
        return str(self.actor)[:150]


def audited(
    action: str,
    request: ActionRequest,
    carry_out: Callable[[], dict[str, Any]],
    about: Mapping[str, Any],
    given: Sequence[Any] = (),
) -> OperatorAction:
    """Carries an action out once, with its row in the same transaction; a refusal leaves a row of its own.

    Args:
        action: its name.
        request: who wants it.
        carry_out: does it, and returns what the row says of it.
        about: what it is done to, by the name of a column; the row has it in its `after` where it has no such column.
        given: what it is told besides, of which the row keeps a digest.

    Raises:
        OperationRefused: it cannot be done, now or at the first press.
    """
    named = {k: v for k, v in about.items() if not hasattr(OperatorAction, k)}
    target = {k: v for k, v in about.items() if k not in named}
    if given:
        named["given"] = _digest(given)
    done = OperatorAction.Result.DONE
    if known := _answered(action, request, target, named):
        return known
    try:
        with transaction.atomic():
            facts = carry_out()
            after = {**facts.pop("after", {}), **named}
            return _record(action, request, done, **facts, after=after)
    except IntegrityError:
        if known := _answered(action, request, target, named):
            return known  # the same press, a moment ago
        raise
    except OperationRefused as refusal:
        if known := _answered(action, request, target, named):
            return known  # the same press, a moment ago, has changed what this one saw
        _record_refusal(action, request, refusal, target, named)
        raise


def _answered(
    action: str,
    request: ActionRequest,
    target: Mapping[str, Any],
    named: Mapping[str, Any],
) -> OperatorAction | None:
    known = OperatorAction.objects.filter(key=request.key).first()
    if known is None:
        return None
    same = all(getattr(known, name) == value for name, value in target.items())
    # Rows of earlier versions, and those that are written together, have no digest.
    told = {"given": named.get("given"), **known.after}
    same = same and known.action == action and named.items() <= told.items()
    if not (same and _is_of(known, request)):
        raise OperationRefused(
            Text("this key was used for another action; reload the page")
        )
    if known.result == OperatorAction.Result.REFUSED:
        kind = TOLD_APART.get(str(known.after.get("refused", "")), OperationRefused)
        raise kind(known.said)
    return known


def _digest(given: Sequence[Any]) -> str:
    """A keyed digest that recognises the same values; without the key the values cannot be guessed."""
    text = json.dumps(given, sort_keys=True, default=str)
    return salted_hmac("orchestrator.audit", text, algorithm="sha256").hexdigest()


def _is_of(known: OperatorAction, request: ActionRequest) -> bool:
    """Whether a row belongs to the actor; an actor without an account (on the command line) is compared by name."""
    if request.actor.pk is not None:
        return bool(known.actor_id == request.actor.pk)
    return known.actor_id is None and known.actor_name == request.actor_name


def _record_refusal(
    action: str,
    request: ActionRequest,
    refusal: OperationRefused,
    target: Mapping[str, Any],
    named: Mapping[str, Any],
) -> None:
    # A target that does not exist leaves no trace in the row, only in the refusal's text.
    event = InboxEvent.objects.filter(pk__in=[target.get("event_id")]).first()
    process_id = event.process_id if event else target.get("instance_id")
    instance = ProcessInstance.objects.filter(pk__in=[process_id]).first()
    bulk = BulkOperation.objects.filter(pk__in=[target.get("bulk_id")]).first()
    about = {"bulk": bulk} if bulk is not None else {}
    try:
        with transaction.atomic():
            _record(
                action,
                request,
                OperatorAction.Result.REFUSED,
                **about,
                instance=instance,
                event=event,
                after={**named, **_kind_of(refusal)},
                detail=refusal.told,
                at=database_now(),
            )
    except IntegrityError:
        pass  # the same press was recorded a moment ago


def _kind_of(refusal: OperationRefused) -> dict[str, str]:
    """The kind of a refusal as its row keeps it; nothing for `OperationRefused` itself."""
    for name, kind in TOLD_APART.items():
        if isinstance(refusal, kind):
            return {"refused": name}
    return {}


def _record(
    action: str, request: ActionRequest, result: OperatorAction.Result, **facts: Any
) -> OperatorAction:
    row = row_of(action, request, result, **facts)
    row.save(force_insert=True)
    return row


def row_of(
    action: str, request: ActionRequest, result: OperatorAction.Result, **facts: Any
) -> OperatorAction:
    """The audit row of an action, not stored yet.

    Args:
        action: its name.
        request: who wants it.
        result: whether it was done.
        facts: its further columns.
    """
    if request.way:
        facts["after"] = {**facts.get("after", {}), "way": request.way}
    if request.bulk is not None:
        facts["bulk_id"] = request.bulk
    facts["text"] = pack_text(facts.get("detail", ""))
    actor = request.actor if not isinstance(request.actor, AnonymousUser) else None
    return OperatorAction(
        key=request.key,
        action=action,
        actor=actor,
        actor_name=request.actor_name,
        address=request.address,
        reason=storable_text(request.reason),
        expected_revision=request.expected_revision,
        result=result,
        **facts,
    )
