"""Filling the database in batches, each a transaction of its own: what was cut off goes on where it was.

One run fills a database at a time. Each batch waits until no other one is being written, and then looks whether it
still is the next: so two runs never give the same number, and one of them ends. A lock that is kept between the
batches would do the same, but not behind PgBouncer, where each transaction may have another session.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from django.core import serializers
from django.db import connection, transaction
from django.db.models import Max, Model, QuerySet

from bench.seed import tables
from bench.seed.copies import Place, Template, key_of
from bench.seed.recording import Recording
from bench.seed.scenarios import KEY
from bench.seed.written import copied_models
from examples.order_listing.models import Order
from examples.support_inquiry.models import Ticket
from orchestrator.engine.storage import idle_limit
from orchestrator.engine.storage.batch import database_now
from orchestrator.engine.storage.beginnings import LOCKS, OURS
from orchestrator.exceptions import ProcessionError
from orchestrator.models import Definition, ProcessInstance

BATCH = 1_000
"""Copies that come in with one commit."""

MOST = 10 ** KEY.count("?") - 1
PERIOD = timedelta(days=90)
"""Over how long the processes have run."""

GOLDEN = 0.6180339887498949
"""Its multiples spread evenly: each kind of process comes up again and again, as often as is its share."""


PLACE = LOCKS + 2
"""The number of our advisory lock, beside those of the engine."""

NUMBERED: Mapping[type[Model], str] = {
    ProcessInstance: "correlation_key",
    Order: "order_id",
    Ticket: "ticket",
}
"""Where a copy's key stands: `prune` removes processes, and leaves their orders and tickets."""


class SeededBeside(ProcessionError):
    """Another `seed` fills this database too: let it end, then start this one again, which goes on from there."""


def seeded() -> int:
    """How many copies there are."""
    return _copies(ProcessInstance).count()


def seed(
    number: int,
    recordings: Sequence[Recording],
    told: Callable[[int], object] = lambda done: None,
) -> None:
    """Fills the database until it has so many copies.

    Args:
        number: of copies, with those of earlier calls.
        recordings: what is copied.
        told: is told after each commit how many copies were added.

    Raises:
        SeededBeside: somebody else adds copies too.
    """
    templates = _templates(recordings)
    last = _last()
    end = last + number - seeded()
    begun = _begun()
    for first in range(last + 1, end + 1, BATCH):
        batch = range(first, min(first + BATCH, end + 1))
        begun = _batch(templates, batch, begun, end)
        told(len(batch))


def tidy() -> None:
    """Lets the database know how much is in its tables now."""
    tables.tidy(copied_models())


def _begun() -> datetime:
    """When the last one of earlier calls ended; the beginning of the time that is filled, if there is none."""
    last = _copies(ProcessInstance).order_by("correlation_key").last()
    return last.changed_at if last else database_now() - PERIOD


def _copies(model: type[Model]) -> QuerySet[Any]:
    """What a table has of the copies."""
    return model._default_manager.filter(
        **{f"{NUMBERED[model]}__range": (key_of(0), key_of(MOST))}
    )


def _last() -> int:
    """The highest number that a copy has, or had before it was removed."""
    prefix = KEY[: KEY.index("?")]
    found = [
        _copies(model).aggregate(last=Max(column))["last"]
        for model, column in NUMBERED.items()
    ]
    return max(int(key.removeprefix(prefix)) if key else 0 for key in found)


def _take_turn(first: int) -> None:
    """Lets nobody else seed until the transaction ends; SQLite has one writer at a time anyway.

    Args:
        first: the number that is to come next.

    Raises:
        SeededBeside: it is no longer the next one.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [OURS, PLACE])
    if _last() != first - 1:
        raise SeededBeside


def _batch(
    templates: Sequence[Template], batch: range, begun: datetime, last: int
) -> datetime:
    """Adds some copies, of those up to the last one; returns when the last of them ended."""
    chosen = [(one, templates[choice]) for one, choice in _choices(templates, batch)]
    needed: Counter[type[Model]] = Counter()
    for _, template in chosen:
        needed.update(template.counts)
    lines: dict[type[Model], list[str]] = defaultdict(list)
    with transaction.atomic():
        _take_turn(batch[0])
        idle_limit.allow(idle_limit.LONG)
        now = database_now()
        step = (now - begun) / (last - batch[0] + 1)
        ids = {model: iter(tables.reserved(model, n)) for model, n in needed.items()}
        end = begun
        for one, template in chosen:
            end += step
            own = {
                m: [next(ids[m]) for _ in range(n)] for m, n in template.counts.items()
            }
            for model, text in template.copy(Place(one, end, now, own)).items():
                lines[model].append(text)
        for model, texts in lines.items():
            tables.write(model, "".join(texts))
    return end


def _choices(templates: Sequence[Template], batch: range) -> Iterator[tuple[int, int]]:
    """Which template each copy is of: first one of each, then as their shares are."""
    bounds = list(accumulate(template.share for template in templates))
    for one in batch:
        if one <= len(templates):
            yield one, one - 1
        else:
            yield one, bisect(bounds, one * GOLDEN % 1 * bounds[-1])


def _templates(recordings: Sequence[Recording]) -> list[Template]:
    return [
        Template(recording, _definitions(recording), connection.vendor)
        for recording in recordings
    ]


def _definitions(recording: Recording) -> dict[int, int]:
    """The keys of the recorded definitions in this database, which has them from now on."""
    found: dict[int, int] = {}
    for stored in serializers.deserialize("json", recording.definitions):
        row: Any = stored.object
        known, _ = Definition.objects.get_or_create(
            name=row.name,
            version=row.version,
            fingerprint=row.fingerprint,
            defaults={"kind": row.kind, "graph": row.graph},
        )
        found[row.pk] = known.pk
    return found
