"""The access tokens of one person, as their page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from orchestrator.access_tokens import tokens_of
from orchestrator.models import AccessToken

PAGE = 100
"""Tokens that are shown, the newest; those that live are always fewer, and come first."""


@dataclass(frozen=True)
class ShownToken:
    """One token, and how it is: living, expired, or revoked."""

    row: AccessToken
    state: str


def tokens_page(owner: Any) -> list[ShownToken]:
    """The tokens of one person: those that live first, then those that are over, each the newest first."""
    now = timezone.now()
    mine = tokens_of(owner)
    living = mine.filter(revoked_at=None, expires_at__gt=now)
    others = mine.exclude(pk__in=[row.pk for row in living])
    rows = [*living, *others[:PAGE]]
    return [ShownToken(row, _state(row, now)) for row in rows[:PAGE]]


def _state(row: AccessToken, now: datetime) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "living" if row.expires_at > now else "expired"
