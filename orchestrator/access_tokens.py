"""Personal access tokens: what a program brings in the place of its owner's session.

A token is 256 bits of the system's randomness, of which SHA-256 is kept. A slow hash, as passwords have, would be for
values that can be guessed: nobody tries 2^256 of them, however fast each try is, and each request would pay for it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from orchestrator.models import AccessToken

PREFIX = "pcs_"
"""By which programs that look for leaked secrets know one of ours."""

BYTES = 32

LONGEST_LIFE = 365
"""Days that a token may live at most."""

MOST = 20
"""Tokens of one person that live."""

SEEN_EVERY = timedelta(minutes=1)
"""No more often it is written that a token is used: what that costs is the same however much it is used."""

USE = "orchestrator.use_accesstoken"
"""The permission to make tokens, and to use them."""

_FORM = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}", re.ASCII)


def new_value() -> str:
    """A token that nobody has yet."""
    return PREFIX + secrets.token_urlsafe(BYTES)


def digest_of(value: str) -> str:
    """What is kept of a token; "" for what cannot be one."""
    known = _FORM.fullmatch(value)
    return hashlib.sha256(value.encode()).hexdigest() if known else ""


def holder_of(digest: str) -> AccessToken | None:
    """The token of this digest, with its owner; None where it is over, or its owner may not use it any more."""
    token = living().filter(digest=digest).first() if digest else None
    if token is None:
        return None
    # Not by a join: a project's own manager of its people may leave some out.
    owner = get_user_model()._default_manager.filter(pk=token.owner_id).first()
    if owner is None or not owner.is_active or not owner.has_perm(USE):
        return None
    token.owner = owner
    _seen(token)
    return token


def living() -> QuerySet[AccessToken]:
    """The tokens that can be used, by the clock of the database."""
    return AccessToken.objects.filter(revoked_at=None, expires_at__gt=Now())


def tokens_of(owner: Any) -> QuerySet[AccessToken]:
    """The tokens of one person, newest first."""
    return AccessToken.objects.filter(owner=owner.pk).order_by("-pk")


def _seen(token: AccessToken) -> None:
    """Writes that a token is used, unless that was written a moment ago."""
    at = token.last_used_at
    if at is not None and timezone.now() - at < SEEN_EVERY:
        return
    long_ago = Q(last_used_at=None) | Q(last_used_at__lt=Now() - SEEN_EVERY)
    AccessToken.objects.filter(long_ago, pk=token.pk).update(last_used_at=Now())
