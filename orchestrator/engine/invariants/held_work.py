"""Invariants of claims and of pauses between attempts: a worker comes back to each, within a known time."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db.models import Exists, OuterRef, Q

from orchestrator import exceptions
from orchestrator.configuration.conf import conf
from orchestrator.engine.invariants.records import WORK
from orchestrator.engine.invariants.stored_sets import WHOLE, StoredPart
from orchestrator.engine.sql.batch import database_now
from orchestrator.models import (
    CommandStatus,
    InboxEvent,
    IssuedCommand,
    StepRun,
    StepStatus,
    Verdict,
    Worker,
)
from orchestrator.models.inbox_event import UNDECIDED

SLACK = timedelta(seconds=60)
LONGEST_LEASE = timedelta(days=1)
"""The longest lease that the settings allow."""
HEAD = "Traceback (most recent call last):"
ERROR = re.compile(r"^([A-Za-z_][\w.]*)(?::|$)", re.ASCII)
LOOK = 1_000
"""The most rows of a table whose errors are read."""


def leases(part: StoredPart = WHOLE) -> Iterator[str]:
    """I6: no claim of a worker that is not there ends later than any lease, in the present settings or earlier ones."""
    longest = database_now() + LONGEST_LEASE + SLACK
    worker = Worker.objects.filter(pk=OuterRef("owner"))
    for noun, work, process in WORK:
        held = part.of(work.exclude(owner=""), process).filter(wake_at__gt=longest)
        for row in held.exclude(Exists(worker))[:20]:
            yield f"{noun} {row.pk} is held until {row.wake_at} by {row.owner}, which is no worker"


def retries(part: StoredPart = WHOLE) -> Iterator[str]:
    """I7: a pause between two attempts is not longer than the longest, unless its error may have asked for that."""
    longest = timedelta(seconds=conf().BACKOFF_CAP_SECONDS) + SLACK
    late = {"owner": "", "wake_at__gt": database_now() + longest}
    for noun, rows, process in _between_attempts():
        waiting = part.of(rows.filter(**late).exclude(error=""), process)
        found = (row for row in waiting.order_by()[:LOOK] if _is_usual(row.error))
        for row in islice(found, 20):
            yield f"{noun} {row.pk} is tried again at {row.wake_at}, later than the longest pause"


def _between_attempts() -> Iterator[tuple[str, Any, str]]:
    """The work between two attempts. Work that waits for other work has the time of that, and is left out."""
    older = InboxEvent.objects.filter(
        UNDECIDED,
        Q(process=OuterRef("process"))
        | Q(target=OuterRef("target"), correlation_key=OuterRef("correlation_key")),
        pk__lt=OuterRef("pk"),
        wake_at__gte=OuterRef("wake_at"),
    )
    events = InboxEvent.objects.filter(verdict=Verdict.RECEIVED)
    yield "event", events.exclude(Exists(older)), "process"
    commands = IssuedCommand.objects.filter(status=CommandStatus.RETRYING, line="")
    yield "command", commands, "instance"
    deadlines = Q(kind="", finished_at=None)
    runs = StepRun.objects.filter(Q(status=StepStatus.RETRYING) | deadlines)
    yield "step run", runs, "instance"


def _is_usual(error: str) -> bool:
    """Whether an error is surely of a class that asks for no pause of its own, read from its traceback."""
    if error.count(HEAD) != 1 or not error.startswith(HEAD):
        return False  # an error with a cause, the end of a long one, or no traceback
    lines = error.splitlines()[1:]
    last = next((line for line in lines if not line.startswith((" ", "\t"))), "")
    name = ERROR.match(last)
    if name is None:
        return False
    module, _, short = name[1].rpartition(".")
    if module not in ("", exceptions.__name__):
        return False
    found: Any = getattr(exceptions if module else builtins, short, None)
    is_error = isinstance(found, type) and issubclass(found, BaseException)
    return is_error and not issubclass(found, exceptions.Outcome)
