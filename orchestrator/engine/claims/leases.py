"""Renewing and ending the leases of workers, in one message for all of a supervisor's children."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from orchestrator.collecting import group_by_key
from orchestrator.conf import conf
from orchestrator.engine.storage import uncertain
from orchestrator.engine.storage.batch import (
    Raw,
    Statement,
    at_commit,
    database_now,
    send,
)
from orchestrator.engine.storage.row_statements import ALL, Condition
from orchestrator.engine.storage.table import Table
from orchestrator.engine.storage.tables import WORK, step_runs
from orchestrator.models import Lost, StepStatus, Work
from orchestrator.text import Text, pack_text, with_error_type

ERRORS = {Lost.TIMED_OUT: "TimedOut", Lost.DIED: "WorkerDied"}
TOLD = {
    Lost.TIMED_OUT: Text("it ran longer than it may, or did not report in time"),
    Lost.DIED: Text("the worker died or was killed"),
}
"""How a worker was lost, in words for people."""


def renew(owners: Sequence[str]) -> None:
    """Makes the work that living workers hold theirs for another lease, counted from when the database does it.

    So a renewal that comes late, out of a connection that had fallen silent, never shortens a later one.
    """
    if not owners:
        return
    until = at_commit() + timedelta(seconds=conf().LEASE_SECONDS)
    held = _held(owners)
    send(table.update({"wake_at": until}, {}, None, held) for table in WORK)


def may_end(since: float) -> bool:
    """Whether a lease that was whole at a monotonic time may soon be over: what has not begun is not begun then."""
    return time.monotonic() - since > conf().LEASE_SECONDS / 2


def name_of(work: Work) -> str:
    """One piece of work as text, short enough for a worker's slot."""
    return f"{work._meta.model_name}:{work.pk}"


def end_uncertain(owner: str, besides: Collection[str] = ()) -> bool:
    """Frees what may have been left in a worker's name without its knowing.

    Args:
        owner: its boot id.
        besides: the names of what it has in hand.

    Returns:
        Whether anything was uncertain.
    """
    if not uncertain.noted():
        return False
    end([owner], besides=besides)
    uncertain.clear()
    return True


def end(
    owners: Sequence[str],
    *,
    in_hand: Mapping[str, Lost] | None = None,
    besides: Collection[str] = (),
) -> None:
    """Frees at once what workers held that are gone.

    Args:
        owners: their boot ids.
        in_hand: the names of the work that they were at, with how they were lost: it may have killed them,
            so the attempt counts, unless its outcome was only not stored. What they had only claimed is innocent.
        besides: the names of what they go on with.
    """
    now, in_hand = database_now(), in_hand or {}
    cut_off = [work for work, how in in_hand.items() if how == Lost.CUT_OFF]
    lost = {work: how for work, how in in_hand.items() if how != Lost.CUT_OFF}
    freed = {"owner": "", "wake_at": now, "attempt": Raw("attempt - 1")}
    free = [
        table.update(
            freed | (UNBEGUN if table is step_runs else {}),
            {},
            None,
            _held(owners, but_for(table, besides)),
        )
        for table in WORK
    ]
    send([*charged(owners, lost, now), *_noted(owners, cut_off), *free])


def _noted(owners: Sequence[str], cut_off: Collection[str]) -> Iterator[Statement]:
    """Notes of steps that they had begun and nothing of that is stored: one that must not run twice is for people."""
    keys = [pk for table, pk in map(named, cut_off) if table is step_runs]
    for owner in owners if keys else ():
        running = {"owner": owner, "status": StepStatus.RUNNING}
        note = {"lost": Lost.CUT_OFF}
        yield step_runs.update(note, running, None, step_runs.keyed(keys))


def charged(
    owners: Sequence[str], lost: Mapping[str, Lost], now: datetime
) -> Iterator[Statement]:
    """Frees work at which its workers were lost, or which was taken from them: the attempt counts.

    Args:
        owners: the workers' boot ids.
        lost: the names of the work, with how it was lost.
        now: the database's time.
    """
    works = ((*named(work), happened) for work, happened in lost.items())
    by_kind = group_by_key(((table, happened), pk) for table, pk, happened in works)
    for (table, happened), keys in by_kind.items():
        for owner in owners:
            yield from _charged(table, keys, owner, happened, now)


def but_for(table: Table[Any], works: Collection[str]) -> Condition:
    """What is said of all rows of a table but for some, by their names."""
    found = [named(work) for work in works]
    keys = [pk for its_table, pk in found if its_table is table]
    return table.keyed(keys, but_for=True) if keys else ALL


UNBEGUN = {"status": Raw("CASE WHEN status = 'running' THEN 'ready' ELSE status END")}
"""A step that was only claimed is as ready as before; only what was begun may have had an effect."""


def _charged(
    table: Table[Any], keys: list[Any], owner: str, happened: Lost, now: datetime
) -> list[Statement]:
    mine, these = {"owner": owner}, table.keyed(keys)
    freed = {"owner": "", "wake_at": now}
    if table is not step_runs:
        return [table.update(freed, mine, None, these)]
    # A process manager's visit only waits for its deadline; a workflow's has lost an attempt.
    said = with_error_type(ERRORS[happened], TOLD[happened])
    lost = {
        **freed,
        "status": StepStatus.RETRYING,
        "error": said,
        "text": pack_text(said),
        "lost": happened,
        "given_back": 0,
    }
    running = {**mine, "status": StepStatus.RUNNING}
    return [
        table.update(lost, running, None, these),
        table.update(freed, mine, None, these),
    ]


def named(work: str) -> tuple[Table[Any], Any]:
    """The table and the key of a piece of work that has this name."""
    model, _, pk = work.partition(":")
    table = next(table for table in WORK if table.model._meta.model_name == model)
    return table, table.model._meta.pk.to_python(pk)


HELD = "NOT owner = '' AND wake_at IS NOT NULL"
"""As the index of what is held is written: what waits, for its turn or its time, may be a million rows."""


def _held(owners: Sequence[str], which: Condition = ALL) -> Condition:
    """What is said of the work that workers hold."""
    marks = ", ".join(["%s"] * len(owners))
    sql = f" AND {HELD} AND owner IN ({marks}){which.sql}"
    return Condition(sql, (*owners, *which.params))
