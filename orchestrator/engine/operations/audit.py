"""The audit of operator actions: an action happens once and leaves one row, also when it is refused.

The effect and its row are one transaction. The same request once more gets the first answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction
from django.utils.crypto import salted_hmac

from orchestrator.engine.sql.batch import database_now
from orchestrator.exceptions import OperationRefused, PermissionMissing, StaleRevision
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
)
from orchestrator.text import Text, pack_text, storable_text

TOLD_APART = {kind.__name__: kind for kind in (PermissionMissing, StaleRevision)}
"""Refusals with a class of their own. The row keeps the class, so that the same request gets the same answer again."""


@dataclass(frozen=True)
class ActionRequest:
    """A request for an action.

    Args:
        actor: the user.
        key: made by the page; a request with the same key gets the first answer.
        reason: the actor's reason.
        expected_revision: the revision that the page showed; None for no such check.
        address: the network address of the actor.
        way: the origin of the request, if not the console.
        bulk: the bulk operation of the request.
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


def carry_out_once(
    action: str,
    request: ActionRequest,
    carry_out: Callable[[], dict[str, Any]],
    about: Mapping[str, Any],
    given: Sequence[Any] = (),
) -> OperatorAction:
    """Carry an action out once, with its row in the same transaction; a refusal leaves a row of its own.

    Args:
        action: its name.
        request: the actor and the reason.
        carry_out: changes the target, and returns the further columns of the row.
        about: the target, by the name of a column; the `after` of the row has it where the row has no such column.
        given: the values of the form, of which the row keeps a digest.

    Raises:
        OperationRefused: the target does not allow it, or did not at the first press.
    """
    after = {k: v for k, v in about.items() if not hasattr(OperatorAction, k)}
    columns = {k: v for k, v in about.items() if k not in after}
    after |= {"given": _digest(given)} if given else {}
    attempt = _Attempt(action, request, columns, after)
    return attempt.answer() or attempt.carry_out(carry_out)


@dataclass(frozen=True)
class _Attempt:
    """One press. Columns of the row name the target, and keys of its `after`."""

    action: str
    request: ActionRequest
    columns: Mapping[str, Any]
    after: Mapping[str, Any]

    def carry_out(self, change: Callable[[], dict[str, Any]]) -> OperatorAction:
        """Changes the target, and stores the row.

        Raises:
            OperationRefused: the target does not allow it.
        """
        try:
            with transaction.atomic():
                facts = change()
                facts["after"] = {**facts.get("after", {}), **self.after}
                done = OperatorAction.Result.DONE
                return _record(self.action, self.request, done, **facts)
        except (IntegrityError, OperationRefused) as error:
            if known := self.answer():
                return known  # the same press, a moment ago, has changed the target
            if isinstance(error, OperationRefused):
                self.record_refusal(error)
            raise

    def answer(self) -> OperatorAction | None:
        """The row of an earlier press with the same key.

        Raises:
            OperationRefused: the earlier press was refused, or was another action.
        """
        known = OperatorAction.objects.filter(key=self.request.key).first()
        if known is None:
            return None
        if not self._is_same(known):
            raise OperationRefused(
                Text("this key was used for another action; reload the page")
            )
        if known.result == OperatorAction.Result.REFUSED:
            kind = TOLD_APART.get(str(known.after.get("refused", "")), OperationRefused)
            raise kind(known.said)
        return known

    def _is_same(self, known: OperatorAction) -> bool:
        # Rows of earlier versions, and those that are written together, have no digest.
        told = {"given": self.after.get("given"), **known.after}
        same = all(getattr(known, name) == key for name, key in self.columns.items())
        same = same and known.action == self.action
        return same and self.after.items() <= told.items() and self._is_of_actor(known)

    def _is_of_actor(self, known: OperatorAction) -> bool:
        """Whether a row belongs to the actor. An actor of the command line has no account: the name decides."""
        if self.request.actor.pk is not None:
            return bool(known.actor_id == self.request.actor.pk)
        return known.actor_id is None and known.actor_name == self.request.actor_name

    def record_refusal(self, refusal: OperationRefused) -> None:
        """Stores the row of a refusal; an unknown target is in its text alone."""
        key, result = self.columns.get, OperatorAction.Result.REFUSED
        event = InboxEvent.objects.filter(pk__in=[key("event_id")]).first()
        process_id = event.process_id if event else key("instance_id")
        instance = ProcessInstance.objects.filter(pk__in=[process_id]).first()
        bulk = BulkOperation.objects.filter(pk__in=[key("bulk_id")]).first()
        facts: dict[str, Any] = {"bulk": bulk} if bulk is not None else {}
        facts |= {"instance": instance, "event": event, "detail": refusal.told}
        facts["after"] = {**self.after, **_kind_of(refusal)}
        # The same press may have recorded it a moment ago.
        with suppress(IntegrityError), transaction.atomic():
            _record(self.action, self.request, result, **facts, at=database_now())


def _digest(given: Sequence[Any]) -> str:
    """A keyed digest of values; the values cannot be guessed without the key."""
    text = json.dumps(given, sort_keys=True, default=str)
    return salted_hmac("orchestrator.audit", text, algorithm="sha256").hexdigest()


def _kind_of(refusal: OperationRefused) -> dict[str, str]:
    """The class of a refusal, as the row keeps it; empty for `OperationRefused` itself."""
    for name, kind in TOLD_APART.items():
        if isinstance(refusal, kind):
            return {"refused": name}
    return {}


def _record(
    action: str, request: ActionRequest, result: OperatorAction.Result, **facts: Any
) -> OperatorAction:
    row = audit_row(action, request, result, **facts)
    row.save(force_insert=True)
    return row


def audit_row(
    action: str, request: ActionRequest, result: OperatorAction.Result, **facts: Any
) -> OperatorAction:
    """Return the audit row of an action, not stored yet; `facts` are its further columns."""
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
