"""Putting what has happened into notices, one to each recipient at a time.

In one transaction: read what has happened, count failures into their groups, add to the notice that waits for its time,
forget what has happened. So whatever is killed in between, nothing is lost and nothing is told twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max, Q

from orchestrator.collecting import group_by_key
from orchestrator.engine.notices import turn
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import FailureGroup, Notice, NoticeStatus, Occurrence
from orchestrator.notice_settings import Recipient, Topic, recipients

MOST = 500
"""How much one transaction takes in."""
SHOWN = 20
"""How much of it a notice tells in full; of the rest it says how many there are."""
QUIET = timedelta(days=1)
"""A group of failures that comes again after so long is told as if it were new."""
TENFOLD = 10

Item = dict[str, Any]


def gather() -> bool:
    """Takes in what has happened; whether there may be more of it.

    Raises:
        DatabaseError: it refused for now.
    """
    if not Occurrence.objects.exists():  # no transaction, hence no lock, for nothing
        return False
    with transaction.atomic(durable=True):
        if not turn.is_mine():
            return False
        found = list(Occurrence.objects.order_by("pk")[:MOST])
        items = list(_items(found))
        now = database_now()
        for name, recipient in recipients().items():
            mine = [one for one in items if _wants(name, recipient, one)]
            _add(name, recipient, mine, now)
        Occurrence.objects.filter(pk__in=[one.pk for one in found]).delete()
    return len(found) == MOST


def _wants(name: str, recipient: Recipient, item: Item) -> bool:
    named = name in item["recipients"]
    return named or recipient.wants(item["topics"], item["definition"])


def _items(found: Sequence[Occurrence]) -> Iterator[Item]:
    """What is worth telling: of failures, groups."""
    yield from (_item(one) for one in found if not one.fingerprint)
    failures = group_by_key((one.fingerprint, one) for one in found if one.fingerprint)
    known = FailureGroup.objects.in_bulk(list(failures))
    groups = [known.get(key) or _new(alike[0]) for key, alike in failures.items()]
    for group, alike in zip(groups, failures.values(), strict=True):
        yield _counted(group, alike)
    FailureGroup.objects.bulk_create(
        groups,
        update_conflicts=True,
        unique_fields=["fingerprint"],
        update_fields=["number", "lately", "told", "last_at"],
    )


ALIKE = ("definition", "step", "kind", "error", "place", "message", "fingerprint")
"""What failures of one group have in common."""

TOLD = (*ALIKE, "recipients", "state", "correlation_key", "queue", "text")
"""What is told of something as it was noted."""

APART = ("recipients", "text")
"""What does not stand in the items of a notice."""


def _item(one: Occurrence, **more: Any) -> Item:
    return {
        **{name: getattr(one, name) for name in TOLD},
        "topics": one.topics.split(),
        "process_id": str(one.process_id or ""),
        "number": 1,
        "at": one.at.isoformat(),
        **more,
    }


def _counted(group: FailureGroup, alike: Sequence[Occurrence]) -> Item:
    """Counts failures into their group; tells of it when it is new, comes again, or has grown tenfold.

    In between, its number is kept right where it stands already.
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


def _new(first: Occurrence) -> FailureGroup:
    alike = {name: getattr(first, name) for name in ALIKE}
    return FailureGroup(**alike, text=first.text, first_at=first.at, last_at=first.at)


def _add(name: str, recipient: Recipient, items: list[Item], now: datetime) -> None:
    """Adds to the notice of a recipient that waits for its time, or begins one."""
    if not items:
        return
    waiting = Notice.objects.filter(recipient=name, status=NoticeStatus.GATHERING)
    notice = waiting.select_for_update().first() or _next(name, recipient, now)
    counts, shown = Counter(notice.counts), list(notice.items)
    grown = {one["fingerprint"]: one for one in shown if one["fingerprint"]}
    for item in items:
        if item["fingerprint"] in grown:  # it stands there already
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
    """Of what an item is, that which its recipient cares most about."""
    of_it = [topic for topic in Topic if topic in item["topics"]]
    # Whoever is told by name may care about none of it.
    return next((one for one in of_it if one in recipient.about), of_it[0])


def _next(name: str, recipient: Recipient, now: datetime) -> Notice:
    """A new notice, due as soon as its recipient may be written to again."""
    pause = timedelta(seconds=recipient.seconds)
    # By the database's time: ids are made by the clocks of several hosts. None begun so lately was settled before that.
    lately = Notice.objects.filter(
        Q(wake_at__isnull=False) | Q(settled_at__gt=now - pause), recipient=name
    )
    last = lately.aggregate(at=Max("begun_at"))["at"]
    # Where a clock was set back, the last one seems to be yet to come.
    due = now if last is None else min(max(now, last + pause), now + pause)
    return Notice(recipient=name, wake_at=due, created_at=now)
