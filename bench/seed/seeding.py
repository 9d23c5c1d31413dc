"""Fills the database in batches, each a transaction of its own, so that another run continues an interrupted one.

One run fills a database at a time. Each batch waits until no other run writes one, and then checks that it is still the
next. So two runs never use the same number, and one of them ends. A lock between the batches would do the same, but not
behind PgBouncer, where each transaction may have another session.
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
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.connection import LONG_IDLE, allow_idle
from orchestrator.engine.storage.start_locks import LOCKS, OURS
from orchestrator.exceptions import ProcessionError
from orchestrator.models import Definition, ProcessInstance

BATCH = 1_000
"""How many copies one commit adds."""

MOST = 10 ** KEY.count("?") - 1
PERIOD = timedelta(days=90)
"""The time over which the copies ran."""

GOLDEN = 0.6180339887498949
"""Its multiples spread evenly: each kind of process occurs as often as its share says."""


PLACE = LOCKS + 2
"""The number of our advisory lock, beside those of the engine."""

NUMBERED: Mapping[type[Model], str] = {
    ProcessInstance: "correlation_key",
    Order: "order_id",
    Ticket: "ticket",
}
"""The columns with a copy's key: `prune` removes processes, and leaves their orders and tickets."""


class SeededBeside(ProcessionError):
    """Another `seed` fills this database too: let it end, then start this one again, which goes on from there."""


def count_copies() -> int:
    """Return the number of copies."""
    return _copies(ProcessInstance).count()


def seed(
    number: int,
    recordings: Sequence[Recording],
    told: Callable[[int], object] = lambda done: None,
) -> None:
    """Fill the database until it has so many copies.

    Args:
        number: the number of copies, with those of earlier calls.
        recordings: the recordings to copy.
        told: called after each commit with the number of new copies.

    Raises:
        SeededBeside: another run adds copies too.
    """
    templates = _templates(recordings)
    last = _last()
    end = last + number - count_copies()
    begun = _begun()
    for first in range(last + 1, end + 1, BATCH):
        batch = range(first, min(first + BATCH, end + 1))
        begun = _batch(templates, batch, begun, end)
        told(len(batch))


def tidy() -> None:
    """Update the statistics of the tables."""
    tables.tidy(copied_models())


def _begun() -> datetime:
    """Return when the last copy of earlier calls ended; without copies the beginning of PERIOD."""
    last = _copies(ProcessInstance).order_by("correlation_key").last()
    return last.changed_at if last else database_now() - PERIOD


def _copies(model: type[Model]) -> QuerySet[Any]:
    """Return the rows of copies in a table."""
    return model._default_manager.filter(
        **{f"{NUMBERED[model]}__range": (key_of(0), key_of(MOST))}
    )


def _last() -> int:
    """Return the highest number that a copy has, or had before its removal."""
    prefix = KEY[: KEY.index("?")]
    found = [
        _copies(model).aggregate(last=Max(column))["last"]
        for model, column in NUMBERED.items()
    ]
    return max(int(key.removeprefix(prefix)) if key else 0 for key in found)


def _take_turn(first: int) -> None:
    """Lock out other runs until the transaction ends; SQLite has one writer at a time anyway.

    Args:
        first: the number of the next copy.

    Raises:
        SeededBeside: another run has added it.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [OURS, PLACE])
    if _last() != first - 1:
        raise SeededBeside


def _batch(
    templates: Sequence[Template], batch: range, begun: datetime, last: int
) -> datetime:
    """Add some copies, up to the last one; return when the last of them ended."""
    chosen = [(one, templates[choice]) for one, choice in _choices(templates, batch)]
    needed: Counter[type[Model]] = Counter()
    for _, template in chosen:
        needed.update(template.counts)
    lines: dict[type[Model], list[str]] = defaultdict(list)
    with transaction.atomic():
        _take_turn(batch[0])
        allow_idle(LONG_IDLE)
        now = database_now()
        step = (now - begun) / (last - batch[0] + 1)
        ids = {model: iter(tables.reserve_ids(model, n)) for model, n in needed.items()}
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
    """Yield the template of each copy: first one of each, then by their shares."""
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
    """Return the ids of the recorded definitions in this database, and store the missing ones."""
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
