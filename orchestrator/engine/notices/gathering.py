"""Gathering of occurrences into notices; each recipient has at most one open notice.

One transaction reads the occurrences, counts failures into their groups, adds items to the open notices, and deletes
the occurrences. A crash therefore neither loses an occurrence nor tells it twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max, Q

from orchestrator.configuration.notice_settings import Recipient, Topic, recipients
from orchestrator.containers import group_by_key
from orchestrator.engine.notices import lock
from orchestrator.engine.sql.batch import database_now
from orchestrator.models import FailureGroup, Notice, NoticeStatus, Occurrence

MOST = 500
"""Occurrences of one transaction at most."""
SHOWN = 20
"""Items that a notice has in full; it only counts the others."""
QUIET = timedelta(days=1)
"""The time without failures after which a group is told again."""
TENFOLD = 10

ItemFields = dict[str, Any]


def gather_notices() -> bool:
    """Gather occurrences into notices; return whether there may be more.

    Raises:
        DatabaseError: the database refused the transaction.
    """
    if not Occurrence.objects.exists():  # no transaction, hence no lock, for nothing
        return False
    with transaction.atomic(durable=True):
        if not lock.acquire_turn():
            return False
        found = list(Occurrence.objects.order_by("pk")[:MOST])
        items = list(_items(found))
        now = database_now()
        for name, recipient in recipients().items():
            mine = [one for one in items if _is_wanted(name, recipient, one)]
            _tell(name, recipient, mine, now)
        Occurrence.objects.filter(pk__in=[one.pk for one in found]).delete()
    return len(found) == MOST


def _is_wanted(name: str, recipient: Recipient, item: ItemFields) -> bool:
    named = name in item["recipients"]
    return named or recipient.wants(item["topics"], item["definition"])


def _items(found: Sequence[Occurrence]) -> Iterator[ItemFields]:
    """Yield the items of occurrences: one for each occurrence, and one for each group of failures."""
    yield from (_item(one) for one in found if not one.fingerprint)
    failures = group_by_key((one.fingerprint, one) for one in found if one.fingerprint)
    known = FailureGroup.objects.in_bulk(list(failures))
    groups = [known.get(key) or _new_group(alike[0]) for key, alike in failures.items()]
    for group, alike in zip(groups, failures.values(), strict=True):
        yield _count_failures(group, alike)
    FailureGroup.objects.bulk_create(
        groups,
        update_conflicts=True,
        unique_fields=["fingerprint"],
        update_fields=["number", "lately", "told", "last_at"],
    )


ALIKE = ("definition", "step", "kind", "error", "place", "message", "fingerprint")
"""The columns that are equal for all failures of a group."""

TOLD = (*ALIKE, "recipients", "state", "correlation_key", "queue", "text")
"""The columns of an occurrence that its item has."""

APART = ("recipients", "text")
"""The keys of an item that its notice does not store."""


def _item(one: Occurrence, **more: Any) -> ItemFields:
    return {
        **{name: getattr(one, name) for name in TOLD},
        "topics": one.topics.split(),
        "process_id": str(one.process_id or ""),
        "number": 1,
        "at": one.at.isoformat(),
        **more,
    }


def _count_failures(group: FailureGroup, alike: Sequence[Occurrence]) -> ItemFields:
    """Count failures into their group, and return its item.

    The item has a state when the group is new, comes again, or has grown tenfold. Other items only update the number in
    an open notice.
    """
    first, last = alike[0], max(one.at for one in alike)
    if not group.number:
        state = "new"
    elif first.at - group.last_at > QUIET:
        group.lately, state = 0, "again"
    else:
        state = "more"
    group.number += len(alike)
    group.lately += len(alike)
    group.last_at = max(group.last_at, last)
    tells = state != "more" or group.lately >= group.told * TENFOLD
    if tells:
        group.told = group.lately
    return _item(first, state=state if tells else "", number=group.lately)


def _new_group(first: Occurrence) -> FailureGroup:
    alike = {name: getattr(first, name) for name in ALIKE}
    return FailureGroup(**alike, text=first.text, first_at=first.at, last_at=first.at)


def _tell(
    name: str, recipient: Recipient, items: list[ItemFields], now: datetime
) -> None:
    """Add items to the open notice of a recipient, or begin one."""
    if not items:
        return
    waiting = Notice.objects.filter(recipient=name, status=NoticeStatus.GATHERING)
    notice = waiting.select_for_update().first() or _new_notice(name, recipient, now)
    counts, shown = Counter(notice.counts), list(notice.items)
    grown = {one["fingerprint"]: one for one in shown if one["fingerprint"]}
    for item in items:
        if item["fingerprint"] in grown:  # the notice has the group
            grown[item["fingerprint"]]["number"] = item["number"]
        elif item["state"] or not item["fingerprint"]:
            counts[_topic(recipient, item)] += 1
            if len(shown) < SHOWN:
                shown.append({key: item[key] for key in item if key not in APART})
                notice.texts |= {item["message"]: item["text"]} if item["text"] else {}
    if counts:
        notice.counts, notice.items = dict(counts), shown
        notice.save()


def _topic(recipient: Recipient, item: Mapping[str, Any]) -> Topic:
    """Return the topic of an item: the first that its recipient has subscribed to, else its first."""
    of_it = [topic for topic in Topic if topic in item["topics"]]
    # A recipient that is named in the definition may have subscribed to none of its topics.
    return next((one for one in of_it if one in recipient.about), of_it[0])


def _new_notice(name: str, recipient: Recipient, now: datetime) -> Notice:
    """Return a new notice, due when the pause of its recipient is over."""
    pause = timedelta(seconds=recipient.seconds)
    # The database has one clock, and hosts make ids by their own. A notice is settled after it has begun.
    newest = Notice.objects.filter(
        Q(wake_at__isnull=False) | Q(settled_at__gt=now - pause), recipient=name
    )
    last = newest.aggregate(at=Max("begun_at"))["at"]
    # If a clock was set back, the last notice may lie in the future.
    due = now if last is None else min(max(now, last + pause), now + pause)
    return Notice(recipient=name, wake_at=due, created_at=now)
