"""Notices that are due: claimed by one sender at a time, settled by whoever holds them, forgotten in the end.

A recipient gets one after the other: as long as one is between attempts, the next one goes on gathering.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from orchestrator.conf import conf
from orchestrator.engine.failures import backoff
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import FailureGroup, Notice, NoticeStatus
from orchestrator.notice_settings import recipients
from orchestrator.text import storable_text

LEASE = timedelta(seconds=60)
"""After which another sender may try; longer than any attempt takes."""
ATTEMPTS = 20
"""How often a notice is tried: for about half a day."""
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=10), timedelta(hours=1)
LOOKED_AT = 100
"""How many that are due are looked at to take one: others may take the first of them meanwhile."""
FORGOTTEN_AT_ONCE = 500
UNKNOWN = timedelta(days=1)
"""A notice that no host has tried for this long is to a recipient who is no longer declared anywhere."""


_ONE_BEFORE = Notice.objects.open().filter(
    recipient=OuterRef("recipient"), status=NoticeStatus.SENDING
)


def claim(owner: str) -> Notice | None:
    """Takes a notice that is due and may be sent now, for a lease; None if there is none.

    That which was tried least comes first, of those the oldest: however many do not answer, whoever does waits no
    longer than one attempt takes.

    One to somebody who is not declared here is left to those hosts that know more, or are yet to know less.

    Raises:
        SettingRefused: who is to be told cannot be read.
    """
    now = database_now()
    due: QuerySet[Notice] = Notice.objects.filter(
        wake_at__lte=now, recipient__in=list(recipients())
    )
    # Those that wait for another are not looked at, however many recipients are not reached for now.
    mine = Q(status=NoticeStatus.SENDING) | ~Exists(_ONE_BEFORE)
    for notice in due.filter(mine).order_by("attempt", "wake_at")[:LOOKED_AT]:
        as_seen = Notice.objects.filter(
            pk=notice.pk,
            status=notice.status,
            attempt=notice.attempt,
            wake_at=notice.wake_at,
        )
        taken = as_seen.update(
            status=NoticeStatus.SENDING,
            attempt=F("attempt") + 1,
            owner=owner,
            wake_at=now + LEASE,
            begun_at=notice.begun_at or now,
        )
        if taken:
            # It may have taken in more until it was claimed.
            return Notice.objects.get(pk=notice.pk)
    return None


def sent(notice: Notice) -> bool:
    """Settles a claimed notice that has arrived; False if somebody else holds it by now."""
    return _settle(_held(notice), NoticeStatus.SENT)


def not_sent(
    notice: Notice, error: str, after: timedelta | None = None, *, hopeless: bool
) -> bool:
    """Stores that an attempt has failed, and when to try again; False if somebody else holds it by now.

    Args:
        notice: the claimed one.
        error: why, without secrets.
        after: how long the receiver wants to be left alone.
        hopeless: whether another attempt would not change it.
    """
    error = storable_text(error)[:500]
    if hopeless or notice.attempt >= ATTEMPTS:
        return _settle(_held(notice), NoticeStatus.GIVEN_UP, error)
    pause = min(max(after or timedelta(), _pause(notice.attempt)), LONGEST_PAUSE)
    wake_at = database_now() + pause
    return bool(_held(notice).update(wake_at=wake_at, owner="", error=error))


def _pause(attempt: int) -> timedelta:
    longest = min(FIRST_PAUSE * 2 ** min(attempt - 1, 20), LONGEST_PAUSE)
    return timedelta(seconds=longest.total_seconds() * backoff.spread.uniform(0.5, 1))


def _settle(rows: QuerySet[Notice], status: NoticeStatus, error: str = "") -> bool:
    settled = {"status": status, "error": error, "wake_at": None, "owner": ""}
    return bool(rows.update(**settled, settled_at=database_now()))


def _held(notice: Notice) -> QuerySet[Notice]:
    return Notice.objects.filter(
        pk=notice.pk,
        owner=notice.owner,
        attempt=notice.attempt,
        status=NoticeStatus.SENDING,
    )


def give_up_unknown() -> None:
    """Gives up notices to those who are not declared any more.

    Raises:
        SettingRefused: who is to be told cannot be read.
    """
    left = Notice.objects.filter(wake_at__lt=database_now() - UNKNOWN)
    unknown = left.exclude(recipient__in=list(recipients()))
    _settle(unknown, NoticeStatus.GIVEN_UP, "the settings have nobody of that name")


def forget_old() -> bool:
    """Forgets notices that were settled long ago, and groups of failures that have not been seen since.

    Gives whether there may be more of them: it takes a part at a time.
    """
    limit = database_now() - timedelta(days=conf().NOTICE_DAYS)
    old = Notice.objects.filter(settled_at__lt=limit)
    groups = FailureGroup.objects.filter(last_at__lt=limit)
    more = False
    for rows in (old, groups):
        keys = list(rows.values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
        rows.model._default_manager.filter(pk__in=keys).delete()
        more = more or len(keys) == FORGOTTEN_AT_ONCE
    return more
