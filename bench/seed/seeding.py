"""Filling the database in batches, each a transaction of its own: what was cut off goes on where it was."""

from __future__ import annotations

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from django.core import serializers
from django.db import connection, transaction
from django.db.models import Max, Model

from bench.seed import tables
from bench.seed.copies import Place, Template, key_of
from bench.seed.recording import Recording
from bench.seed.scenarios import KEY
from bench.seed.written import copied_models
from orchestrator.engine.storage import idle_limit
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import Definition, ProcessInstance

BATCH = 1_000
"""Copies that come in with one commit."""

MOST = 10 ** KEY.count("?") - 1
PERIOD = timedelta(days=90)
"""Over how long the processes have run."""

GOLDEN = 0.6180339887498949
"""Its multiples spread evenly: each kind of process comes up again and again, as often as is its share."""


def seeded() -> int:
    """How many copies there are already."""
    prefix = KEY[: KEY.index("?")]
    ours = ProcessInstance.objects.filter(
        correlation_key__gte=key_of(0), correlation_key__lte=key_of(MOST)
    )
    last = ours.aggregate(last=Max("correlation_key"))["last"]
    return int(last.removeprefix(prefix)) if last else 0


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
    """
    templates = _templates(recordings)
    begun = _begun()
    for first in range(seeded() + 1, number + 1, BATCH):
        batch = range(first, min(first + BATCH, number + 1))
        begun = _batch(templates, batch, begun, number)
        told(len(batch))


def tidy() -> None:
    """Lets the database know how much is in its tables now."""
    tables.tidy(copied_models())


def _begun() -> datetime:
    """When the last one of earlier calls ended; the beginning of the time that is filled, if there is none."""
    last = ProcessInstance.objects.filter(correlation_key=key_of(seeded())).first()
    return last.changed_at if last else database_now() - PERIOD


def _batch(
    templates: Sequence[Template], batch: range, begun: datetime, number: int
) -> datetime:
    """Adds some copies; returns when the last of them ended."""
    chosen = [(one, templates[choice]) for one, choice in _choices(templates, batch)]
    needed: Counter[type[Model]] = Counter()
    for _, template in chosen:
        needed.update(template.counts)
    lines: dict[type[Model], list[str]] = defaultdict(list)
    with transaction.atomic():
        idle_limit.allow(idle_limit.LONG)
        now = database_now()
        step = (now - begun) / (number - batch[0] + 1)
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
