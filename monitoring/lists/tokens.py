"""The access tokens of one person, as their page shows them and as programs list them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils import timezone

from monitoring.queries.lists import KeyedPage, page_by_key
from orchestrator.access_tokens import tokens_of
from orchestrator.models import AccessToken

PAGE = 100
"""The maximum number of shown tokens; living tokens come first, and are always fewer."""


def tokens_page(owner: Any) -> list[tuple[AccessToken, str]]:
    """Return the tokens of one person, each with its state: living, expired or revoked.

    Living tokens come first, then the others; the newest of each first.
    """
    now = timezone.now()
    mine = tokens_of(owner)
    living = mine.filter(revoked_at=None, expires_at__gt=now)
    others = mine.exclude(pk__in=[row.pk for row in living])
    rows = [*living, *others[:PAGE]]
    return [(row, _state(row, now)) for row in rows[:PAGE]]


def newest_tokens(owner: Any, before: str, size: int) -> KeyedPage[AccessToken]:
    """Return a page of the tokens of one person, newest first, whatever their states."""
    return page_by_key(tokens_of(owner), size, before)


def _state(row: AccessToken, now: datetime) -> str:
    if row.revoked_at is not None:
        return "revoked"
    return "living" if row.expires_at > now else "expired"
