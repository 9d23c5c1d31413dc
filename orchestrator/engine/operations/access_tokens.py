"""Make and revoke personal access tokens. The value of a token is shown once, to its owner, and is not stored."""

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
    checked_name,
)
from orchestrator.engine.operations.registry import register
from orchestrator.engine.storage.batch import database_now
from orchestrator.exceptions import OperationRefused
from orchestrator.models import AccessToken
from orchestrator.text import Text

LONGEST = Text("Give the token a name of at most %(number)s characters", LONGEST_NAME)


class MakeToken(Operation):
    """Makes a token for oneself."""

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
        """Makes it.

        Args:
            name: by which its owner knows it, and by which the audit names it.
            days: after which it expires.
            request: whose it will be.

        Returns:
            The token and its value; neither where it was made at an earlier press of the same key.

        Raises:
            OperationRefused: there are too many, there is one of that name, or the person may not.
        """
        made: list[tuple[AccessToken, str]] = []

        def carry_out() -> dict[str, Any]:
            self._check_permission(request)
            now = database_now()
            value = new_token_value()
            token = _stored(
                checked_name(name, LONGEST), days, token_digest(value), request
            )
            made.append((token, value))
            after = {"token": token.name, "until": token.expires_at.isoformat()}
            return {"at": now, "after": after}

        self._audited(request, carry_out)
        return made[0] if made else (None, "")


class RevokeToken(LockedOperation):
    """Ends a token for good: one's own, or with permission anybody's."""

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

    def _check_somewhere(self, request: ActionRequest) -> None:
        """Owners may revoke their own tokens without a permission."""

    def _locked(
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


def _stored(name: str, days: int, digest: str, request: ActionRequest) -> AccessToken:
    """Stores a token.

    Raises:
        OperationRefused: that is not allowed.
    """
    if not 1 <= days <= LONGEST_LIFE:
        raise OperationRefused(
            "Have it expire after 1 to %(number)s days", LONGEST_LIFE
        )
    # Two at once are counted one after the other.
    people = get_user_model()._default_manager.select_for_update()
    list(people.filter(pk=request.actor.pk).values_list("pk"))
    if valid_tokens().filter(owner=request.actor.pk).count() >= MOST:
        raise OperationRefused(
            "You have %(number)s tokens already: revoke one of them first", MOST
        )
    now = database_now()
    # One that has expired gives its name up.
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


def _name_of(pk: Any) -> str:
    """A person as the audit names them."""
    return str(get_user_model()._default_manager.filter(pk=pk).first() or "")[:150]
