"""The audit of operator actions: each is carried out once, with one row, also when it is refused.

The effect and its row are one transaction. Pressing twice, or sending the same request again, gives the first answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
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
from orchestrator.text import Text, packed, storable

TOLD_APART = {kind.__name__: kind for kind in (PermissionMissing, StaleRevision)}
"""The refusals that whoever asked is answered differently: the row keeps which it was, for who asks again."""


@dataclass(frozen=True)
class ActionRequest:
    """Who wants it, why, and what the page showed. The key is made with the page, and makes the press repeatable.

    `way` says by which way it came, where that is not the console; `bulk` is the operation on many that it is part of.
    """

    actor: Any
    key: UUID
    reason: str = ""
    expected_revision: int | None = None
    address: str | None = None
    way: str = ""
    bulk: UUID | None = None


def audited(
    action: str,
    request: ActionRequest,
    carry_out: Callable[[], dict[str, Any]],
    target: Mapping[str, Any],
    named: Mapping[str, Any] = MappingProxyType({}),
    given: Sequence[Any] = (),
) -> OperatorAction:
    """Carries an action out once, with its row in the same transaction; a refusal leaves a row of its own.

    Args:
        action: its name.
        request: who wants it.
        carry_out: does it, and returns what the row says of it.
        target: the column of the row that names what it is done to.
        named: what names it in the row's `after`, where no column does.
        given: what it is told besides, of which the row keeps a digest.

    Raises:
        OperationRefused: it cannot be done, now or at the first press.
    """
    if given:
        named = {**named, "given": _digest(given)}
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
    if not (same and _is_of(known, request.actor)):
        raise OperationRefused(
            Text("this key was used for another action; reload the page")
        )
    if known.result == OperatorAction.Result.REFUSED:
        kind = TOLD_APART.get(str(known.after.get("refused", "")), OperationRefused)
        raise kind(known.said)
    return known


def _digest(given: Sequence[Any]) -> str:
    """By what the same values are known again; nobody who has no key of ours can find out what they were."""
    text = json.dumps(given, sort_keys=True, default=str)
    return salted_hmac("orchestrator.audit", text, algorithm="sha256").hexdigest()


def _is_of(known: OperatorAction, actor: Any) -> bool:
    """Whether a row is of this person; who has no account, as on the command line, is known by name."""
    if actor.pk is not None:
        return bool(known.actor_id == actor.pk)
    return known.actor_id is None and known.actor_name == _name_of(actor)


def _name_of(actor: Any) -> str:
    return str(actor)[:150]


def _record_refusal(
    action: str,
    request: ActionRequest,
    refusal: OperationRefused,
    target: Mapping[str, Any],
    named: Mapping[str, Any],
) -> None:
    # A target that does not exist leaves no trace in the row, only in the refusal's text.
    event = InboxEvent.objects.filter(pk__in=_given(target, "event_id")).first()
    addressed = [event.process_id] if event and event.process_id else []
    instance = ProcessInstance.objects.filter(
        pk__in=_given(target, "instance_id") or addressed
    ).first()
    bulk = BulkOperation.objects.filter(pk__in=_given(target, "bulk_id")).first()
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
    """What the row of a refusal keeps of its kind; nothing of the usual one."""
    for name, kind in TOLD_APART.items():
        if isinstance(refusal, kind):
            return {"refused": name}
    return {}


def _given(target: Mapping[str, Any], name: str) -> list[Any]:
    return [target[name]] if name in target else []


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
    facts["text"] = packed(facts.get("detail", ""))
    actor = request.actor if not isinstance(request.actor, AnonymousUser) else None
    return OperatorAction(
        key=request.key,
        action=action,
        actor=actor,
        actor_name=_name_of(request.actor),
        address=request.address,
        reason=storable(request.reason),
        expected_revision=request.expected_revision,
        result=result,
        **facts,
    )
