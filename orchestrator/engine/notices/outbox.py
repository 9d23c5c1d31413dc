"""The outbox of notices: a sender claims and settles due notices. Old ones are deleted after their retention.

A recipient gets one notice after the other. While one is between attempts, the next one gathers items.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from orchestrator.configuration.conf import conf
from orchestrator.configuration.notice_settings import recipients
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.work import backoff
from orchestrator.models import FailureGroup, Notice, NoticeStatus
from orchestrator.text import storable_text

LEASE = timedelta(seconds=60)
"""The lease of a claimed notice; longer than any attempt takes."""
ATTEMPTS = 20
"""Attempts of a notice at most, over about half a day."""
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=10), timedelta(hours=1)
LOOKED_AT = 100
"""Due notices that a claim tries at most, since other senders may claim the first."""
FORGOTTEN_AT_ONCE = 500
UNKNOWN = timedelta(days=1)
"""The age without an attempt after which the recipient of a notice counts as undeclared on all hosts."""


_ONE_BEFORE = Notice.objects.open().filter(
    recipient=OuterRef("recipient"), status=NoticeStatus.SENDING
)


def claim(owner: str) -> Notice | None:
    """Claim a due notice for a lease, and return it; None if there is none.

    The notice with the fewest attempts comes first, then the oldest. So recipients that do not answer delay the others
    by one attempt at most.

    Notices to recipients that this host does not declare are left to hosts that do.

    Raises:
        SettingRefused: the setting with the recipients cannot be read.
    """
    now = database_now()
    due: QuerySet[Notice] = Notice.objects.filter(
        wake_at__lte=now, recipient__in=list(recipients())
    )
    # Notices behind another of their recipient are not tried, so unreachable recipients do not use up the limit.
    mine = Q(status=NoticeStatus.SENDING) | ~Exists(_ONE_BEFORE)
    for notice in due.filter(mine).order_by("attempt", "wake_at")[:LOOKED_AT]:
        if _claim(notice, owner, now):
            # It may have gathered items until the claim.
            return Notice.objects.get(pk=notice.pk)
    return None


def _claim(notice: Notice, owner: str, now: datetime) -> bool:
    """Claim a notice; return whether no other sender has claimed it before."""
    columns = ("pk", "status", "attempt", "wake_at")
    as_read = {name: getattr(notice, name) for name in columns}
    claimed = Notice.objects.filter(**as_read).update(
        status=NoticeStatus.SENDING,
        attempt=F("attempt") + 1,
        owner=owner,
        wake_at=now + LEASE,
        begun_at=notice.begun_at or now,
    )
    return bool(claimed)


def mark_sent(notice: Notice) -> bool:
    """Settle a claimed notice as sent; return False if another sender holds it by now."""
    return _settle(_claimed(notice), NoticeStatus.SENT)


def mark_not_sent(
    notice: Notice, error: str, after: timedelta | None = None, *, hopeless: bool
) -> bool:
    """Store a failed attempt and the time of the next; return False if another sender holds the notice by now.

    Args:
        notice: the claimed notice.
        error: the reason, without secrets.
        after: the pause that the receiver asks for.
        hopeless: whether further attempts are useless.
    """
    error = storable_text(error)[:500]
    if hopeless or notice.attempt >= ATTEMPTS:
        return _settle(_claimed(notice), NoticeStatus.GIVEN_UP, error)
    pause = min(max(after or timedelta(), _pause(notice.attempt)), LONGEST_PAUSE)
    wake_at = database_now() + pause
    return bool(_claimed(notice).update(wake_at=wake_at, owner="", error=error))


def _pause(attempt: int) -> timedelta:
    longest = min(FIRST_PAUSE * 2 ** min(attempt - 1, 20), LONGEST_PAUSE)
    return timedelta(seconds=longest.total_seconds() * backoff.spread.uniform(0.5, 1))


def _settle(rows: QuerySet[Notice], status: NoticeStatus, error: str = "") -> bool:
    settled = {"status": status, "error": error, "wake_at": None, "owner": ""}
    return bool(rows.update(**settled, settled_at=database_now()))


def _claimed(notice: Notice) -> QuerySet[Notice]:
    return Notice.objects.filter(
        pk=notice.pk,
        owner=notice.owner,
        attempt=notice.attempt,
        status=NoticeStatus.SENDING,
    )


def give_up_unknown() -> None:
    """Give up the notices to recipients that no host declares any more.

    Raises:
        SettingRefused: the setting with the recipients cannot be read.
    """
    left = Notice.objects.filter(wake_at__lt=database_now() - UNKNOWN)
    unknown = left.exclude(recipient__in=list(recipients()))
    _settle(
        unknown, NoticeStatus.GIVEN_UP, "the settings have no recipient of that name"
    )


def forget_old() -> bool:
    """Delete a batch of old settled notices and of groups without recent failures; return whether there may be more."""
    limit = database_now() - timedelta(days=conf().NOTICE_DAYS)
    old = Notice.objects.filter(settled_at__lt=limit)
    groups = FailureGroup.objects.filter(last_at__lt=limit)
    more = False
    for rows in (old, groups):
        keys = list(rows.values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
        rows.model._default_manager.filter(pk__in=keys).delete()
        more = more or len(keys) == FORGOTTEN_AT_ONCE
    return more
