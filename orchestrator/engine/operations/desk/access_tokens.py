"""Make and revoke personal access tokens. The console shows the value of a token once, and nothing stores it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _

from orchestrator.access_tokens import (
    LONGEST_LIFE,
    MOST,
    new_token_value,
    token_digest,
    tokens_of,
    valid_tokens,
)
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import (
    LONGEST_NAME,
    Given,
    LockedOperation,
    Operation,
    Press,
    clean_name,
)
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.batch import database_now
from orchestrator.exceptions import OperationRefused
from orchestrator.models import AccessToken
from orchestrator.text import Text

LONGEST = Text("Give the token a name of at most %(number)s characters", LONGEST_NAME)


class MakeToken(Operation):
    """Makes a token for the operator."""

    name = "make_token"
    label = _("Make a token")
    done = _("Made.")
    may = _("Can make access tokens for oneself, and use them")
    text = _(
        "A program that brings it may do what you may, until it expires or is revoked. It is shown once."
    )
    model = AccessToken
    asks_reason = False
    by_rest = False  # a stolen token could make others that outlive it
    given = (
        Given("name", "text", _("Name")),
        Given("days", "number", _("Days until it expires"), lambda instance: 90),
    )
    permitted_as = "use_accesstoken"

    def __call__(
        self, name: str, days: int, *, request: ActionRequest
    ) -> tuple[AccessToken | None, str]:
        """Make the token.

        Args:
            name: of the token, for its owner and the audit.
            days: after which it expires.
            request: its actor is the owner.

        Returns:
            The token and its value; neither if an earlier press of the same key has made the token.

        Raises:
            OperationRefused: the person has too many tokens, another of that name, or lacks the permission.
        """
        made: list[tuple[AccessToken, str]] = []

        def carry_out() -> dict[str, Any]:
            self._check_permission(request)
            now, value = database_now(), new_token_value()
            token = _store(
                clean_name(name, LONGEST), days, token_digest(value), request
            )
            made.append((token, value))
            after = {"token": token.name, "until": token.expires_at.isoformat()}
            return {"at": now, "after": after}

        self._carry_out_once(request, carry_out)
        return made[0] if made else (None, "")


class RevokeToken(LockedOperation):
    """Ends a token for good: the operator's own, or with the permission any."""

    name = "revoke_token"
    label = _("Revoke")
    done = _("Revoked.")
    may = _("Can revoke the access tokens of others")
    text = _("Whatever brings this token is refused from now on, for good.")
    icon = "cancelled"
    tone = "danger"
    named_by = "token_id"
    model = AccessToken
    asks_reason = False
    on_many = True
    permitted_as = "revoke_accesstoken"

    def _check_for_some(self, request: ActionRequest) -> None:
        """Owners may revoke their own tokens without a permission."""

    def _lock(
        self, key: int, request: ActionRequest, *given: Any
    ) -> tuple[Press, AccessToken]:
        token = AccessToken.objects.select_for_update().filter(pk=key).first()
        if token is None or token.owner_id != request.actor.pk:
            self._check_permission(request)
        if token is None:
            raise OperationRefused("there is no token %(number)s", key)
        if token.revoked_at is not None:
            raise OperationRefused(Text("This token is revoked already"))
        return Press(request, None, database_now()), token

    def _do(self, press: Press, row: AccessToken, *given: Any) -> dict[str, Any]:
        row.revoked_at = press.now
        row.revoked_by = press.request.actor_name
        row.save(update_fields=["revoked_at", "revoked_by"])
        return {"after": {"token": row.name, "owner": _name_of(row.owner_id)}}


make_token = register(MakeToken())
revoke_token = register(RevokeToken())


def _store(name: str, days: int, digest: str, request: ActionRequest) -> AccessToken:
    """Stores a token.

    Raises:
        OperationRefused: the days are out of bounds, the person has too many tokens, or another of that name.
    """
    if not 1 <= days <= LONGEST_LIFE:
        raise OperationRefused(
            "Have it expire after 1 to %(number)s days", LONGEST_LIFE
        )
    _check_number(request.actor)
    now = database_now()
    # An expired token gives its name up.
    over = tokens_of(request.actor).filter(name=name, revoked_at=None)
    over.filter(expires_at__lte=now).update(revoked_at=now)
    token = AccessToken(
        name=name,
        digest=digest,
        owner_id=request.actor.pk,
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    try:
        with transaction.atomic():
            token.save(force_insert=True)
    except IntegrityError:
        raise OperationRefused(
            "You have another token of the name %(name)s", repr(name)
        ) from None
    return token


def _check_number(owner: Any) -> None:
    """Checks that a person may have another token; the lock has two requests counted one after the other.

    Raises:
        OperationRefused: the person has too many.
    """
    people = get_user_model()._default_manager.select_for_update()
    list(people.filter(pk=owner.pk).values_list("pk"))
    if valid_tokens().filter(owner=owner.pk).count() >= MOST:
        raise OperationRefused(
            "You have %(number)s tokens already: revoke one of them first", MOST
        )


def _name_of(pk: Any) -> str:
    """The name of a person, as the audit has it."""
    return str(get_user_model()._default_manager.filter(pk=pk).first() or "")[:150]
