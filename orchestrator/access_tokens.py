"""Personal access tokens: a program sends one in the place of its owner's session.

A token is 256 random bits, and the table keeps its SHA-256. A slow hash protects values that can be guessed, as
passwords: no attacker can try 2^256 values, and each request would pay for the hash.
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
"""Scanners for leaked secrets recognise a token by this prefix."""

BYTES = 32

LONGEST_LIFE = 365
"""The longest life of a token, in days."""

MOST = 20
"""The most valid tokens of one person."""

SEEN_EVERY = timedelta(minutes=1)
"""The least time between two writes of `last_used_at`, however often a program uses the token."""

USE = "orchestrator.use_accesstoken"
"""The permission to make and to use tokens."""

_FORM = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}", re.ASCII)


def new_token_value() -> str:
    """Return a new token."""
    return PREFIX + secrets.token_urlsafe(BYTES)


def token_digest(value: str) -> str:
    """Return the digest that the table keeps of a token; "" for a text that is no token."""
    known = _FORM.fullmatch(value)
    return hashlib.sha256(value.encode()).hexdigest() if known else ""


def find_token(digest: str) -> AccessToken | None:
    """Return the token of a digest with its owner; None if it is not valid, or its owner may not use it."""
    token = valid_tokens().filter(digest=digest).first() if digest else None
    if token is None:
        return None
    # No join: the manager of a project's user model may hide some users.
    owner = get_user_model()._default_manager.filter(pk=token.owner_id).first()
    if owner is None or not owner.is_active or not owner.has_perm(USE):
        return None
    token.owner = owner
    _note_use(token)
    return token


def valid_tokens() -> QuerySet[AccessToken]:
    """Return the tokens that are neither revoked nor expired, by the clock of the database."""
    return AccessToken.objects.filter(revoked_at=None, expires_at__gt=Now())


def tokens_of(owner: Any) -> QuerySet[AccessToken]:
    """Return the tokens of one person, newest first."""
    return AccessToken.objects.filter(owner=owner.pk).order_by("-pk")


def _note_use(token: AccessToken) -> None:
    """Store the time of use, at most once in `SEEN_EVERY`."""
    at = token.last_used_at
    if at is not None and timezone.now() - at < SEEN_EVERY:
        return
    long_ago = Q(last_used_at=None) | Q(last_used_at__lt=Now() - SEEN_EVERY)
    AccessToken.objects.filter(long_ago, pk=token.pk).update(last_used_at=Now())
