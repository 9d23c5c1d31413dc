"""Checking the invariants of a large database: in chunks, each with a snapshot of its own, by one process or several.

A chunk is a part of the rows, bounded in rows, so that its transaction is short. Its checks may read rows of other
parts, as they were at the same moment. A finding is told if a later snapshot has it too.
"""

from __future__ import annotations

import os
import random
import re
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from multiprocessing import get_context
from uuid import UUID

from django.db import connections

from orchestrator.engine.invariants import part_findings
from orchestrator.engine.invariants.stored_sets import StoredPart
from orchestrator.models import InboxEvent, ProcessInstance
from orchestrator.models.process_instance import ProcessInstanceQuerySet

MOST_PROCESSES = 1_000
MOST_NAMED = 500
"""The most processes of a chunk that names them one by one."""
MOST_REVISIONS = 10_000
"""The number of checkpoints after which a chunk ends. A longer history is a chunk of its own."""
MOST_EVENTS = 10_000
"""The most events without a process in a chunk."""
AHEAD = 2
"""The number of chunks that wait for each process."""
NUMBERS = re.compile(r"\b\d+\b")


@dataclass(frozen=True)
class ProcessChunk:
    """A part of the rows to check.

    Args:
        part: the rows.
        number: how many processes it has.
        last: the last process of it; None for rows without a process.
    """

    part: StoredPart
    number: int = 0
    last: UUID | None = None


@dataclass(frozen=True)
class ProcessSelection:
    """The processes to check.

    Args:
        after: the processes with larger ids; None for all, and for the rows without a process too.
        since: the processes that have changed since this moment; None for all.
        sample: the share of the processes, taken at random; None for all.
        seed: what the random numbers begin with.
    """

    after: UUID | None = None
    since: datetime | None = None
    sample: float | None = None
    seed: int = 0

    def processes(self) -> ProcessInstanceQuerySet:
        """Return the processes from which a sample is taken."""
        rows = ProcessInstance.objects.order_by("pk")
        if self.since is not None:
            rows = rows.filter(changed_at__gte=self.since)
        return rows if self.after is None else rows.filter(pk__gt=self.after)

    def number(self) -> int:
        """Return about how many processes there are to check."""
        return round(
            self.processes().count() * (1 if self.sample is None else self.sample)
        )

    def chunks(self) -> Iterator[ProcessChunk]:
        """Yield the chunks: the rows without a process first, then the processes in the order of their ids."""
        if self.after is None and self.sample is None:
            yield from _outside()
        if self.since is None and self.sample is None:
            yield from self._ranges()
        else:
            yield from self._named()

    def _ranges(self) -> Iterator[ProcessChunk]:
        """Ranges of ids that leave none out: a row may name a process that is gone."""
        last = self.after
        for some in _groups(self._read(), MOST_PROCESSES):
            yield ProcessChunk(
                StoredPart(after=last, until=some[-1]), len(some), some[-1]
            )
            last = some[-1]
        yield ProcessChunk(StoredPart(after=last or UUID(int=0)), 0, last)

    def _named(self) -> Iterator[ProcessChunk]:
        chance = random.Random(self.seed)  # noqa: S311  # no secret
        share = 1 if self.sample is None else self.sample
        chosen = (row for row in self._read() if chance.random() < share)
        for some in _groups(chosen, MOST_NAMED):
            yield ProcessChunk(StoredPart(ids=tuple(some)), len(some), some[-1])

    def _read(self) -> Iterator[tuple[UUID, int]]:
        """The ids of processes and their revisions, read in pages."""
        rows, last = self.processes().values_list("pk", "revision"), self.after
        while page := list(
            (rows if last is None else rows.filter(pk__gt=last))[:MOST_PROCESSES]
        ):
            yield from page
            last = page[-1][0]


def _groups(rows: Iterable[tuple[UUID, int]], most: int) -> Iterator[list[UUID]]:
    """Groups of processes with few checkpoints together."""
    group: list[UUID] = []
    revisions = 0
    for pk, revision in rows:
        if group and (len(group) >= most or revisions + revision > MOST_REVISIONS):
            yield group
            group, revisions = [], 0
        group.append(pk)
        revisions += revision
    if group:
        yield group


def _outside() -> Iterator[ProcessChunk]:
    """The rows without a process."""
    rows = InboxEvent.objects.filter(process=None).order_by("pk")
    last = 0
    while True:
        keys = rows.filter(pk__gt=last).values_list("pk", flat=True)
        page = list(keys[:MOST_EVENTS])
        if page or not last:
            until = page[-1] if page else 0
            yield ProcessChunk(StoredPart(outside=True, numbers=(last, until)))
        if len(page) < MOST_EVENTS:
            return
        last = page[-1]


def check_chunk(part: StoredPart) -> list[str]:
    """Return what is found in a part of the rows, and again in a later snapshot."""
    found = part_findings(part)
    if not found:
        return []
    known = {_gist(line) for line in found}
    return [line for line in part_findings(part) if _gist(line) in known]


def _gist(finding: str) -> str:
    """A finding without the numbers that change while its process goes on."""
    return NUMBERS.sub("#", finding)


def check_chunks(
    chunks: Iterable[ProcessChunk], processes: int = 1
) -> Iterator[tuple[ProcessChunk, list[str]]]:
    """Yield the chunks with what is found in them, in their order.

    Args:
        chunks: the chunks.
        processes: how many processes of the system check them; 1 for this process alone.
    """
    if processes == 1:
        for chunk in chunks:
            yield chunk, check_chunk(chunk.part)
        return
    connections.close_all()  # before the processes are made: each has connections of its own
    context = get_context("fork")
    with ProcessPoolExecutor(processes, context, _ignore_interrupts) as pool:
        pool.submit(os.getpid).result()  # makes the processes
        waiting = deque[tuple[ProcessChunk, Future[list[str]]]]()
        try:
            for chunk in chunks:
                waiting.append((chunk, pool.submit(check_chunk, chunk.part)))
                if len(waiting) > AHEAD * processes:
                    first, found = waiting.popleft()
                    yield first, found.result()
            while waiting:
                first, found = waiting.popleft()
                yield first, found.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _ignore_interrupts() -> None:
    """Leave an interrupt to the process that has begun this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
