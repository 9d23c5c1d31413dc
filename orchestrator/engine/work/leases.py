"""Renewing and ending the leases of workers, in one message for all workers of a supervisor."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from orchestrator.configuration.conf import conf
from orchestrator.containers import group_by_key
from orchestrator.engine.sql.batch import (
    NOW,
    Raw,
    Statement,
    at_commit,
    database_now,
    send,
)
from orchestrator.engine.sql.connection import (
    clear_uncertain_commits,
    has_uncertain_commit,
)
from orchestrator.engine.sql.row_statements import ALL, Condition
from orchestrator.engine.sql.table import Table
from orchestrator.engine.sql.tables import WORK, step_runs
from orchestrator.models import Lost, StepStatus, Work
from orchestrator.text import Text, pack_text, with_error_type

ERRORS = {Lost.TIMED_OUT: "TimedOut", Lost.DIED: "WorkerDied"}
HOW_LOST = {
    Lost.TIMED_OUT: Text("it ran longer than it may, or did not report in time"),
    Lost.DIED: Text("the worker died or was killed"),
}
"""The reason for which a worker was lost, in words for people."""


def lost_columns(how: Lost, why: Text) -> dict[str, Any]:
    """Return the columns of claimed work whose worker was lost, beside those that release it."""
    said = with_error_type(ERRORS[how], why)
    return {
        "status": StepStatus.RETRYING,
        "error": said,
        "text": pack_text(said),
        "lost": how,
        "given_back": 0,
    }


def renew_leases(owners: Sequence[str]) -> None:
    """Renew the leases of living workers, counted from the database's time of this statement.

    The database computes the end as it runs the statement: a delayed renewal never shortens a later one.
    """
    if not owners:
        return
    until = at_commit() + timedelta(seconds=conf().LEASE_SECONDS)
    held = _held(owners)
    send(table.update({"wake_at": until}, {}, None, held) for table in WORK)


def lease_may_end(since: float) -> bool:
    """Whether a lease that began at a monotonic time may soon end: unbegun work must not begin then."""
    return time.monotonic() - since > conf().LEASE_SECONDS / 2


def front(table: Table[Any]) -> Raw:
    """Return a moment just before that of the first row of a row's queue, and before now.

    Work that is released uncharged has it: so it precedes all other due work, also rows of one moment with lower keys.
    Work that is released later gets the same moment, and the keys decide. It is a whole millisecond and a
    microsecond on PostgreSQL, and a text that ends with milliseconds on SQLite.
    """
    first = (
        f"SELECT MIN(due.wake_at) FROM {table.name} AS due"  # noqa: S608  # names are the models'
        f" WHERE due.queue = {table.name}.queue AND due.wake_at IS NOT NULL"
    )
    if connection.vendor == "postgresql":
        least, tick = f"LEAST({NOW}, ({first}))", "INTERVAL '1 microsecond'"
        return Raw(f"DATE_TRUNC('milliseconds', {least} - {tick}) + {tick}")
    form = "'%%Y-%%m-%%d %%H:%%M:%%f'"
    return Raw(
        f"(SELECT CASE LENGTH(at) WHEN 19 THEN STRFTIME({form}, at, '-0.001 seconds')"  # noqa: S608  # names are the models'
        f" ELSE SUBSTR(at, 1, 23) END FROM (SELECT MIN(STRFTIME({form}, 'now'), ({first})) AS at))"
    )


def work_name(work: Work) -> str:
    """Return the name of a piece of work, short enough for a worker's slot."""
    return f"{work._meta.model_name}:{work.pk}"


def end_uncertain_leases(owner: str, besides: Collection[str] = ()) -> bool:
    """Release the work that a worker may have claimed by a commit without an answer.

    Args:
        owner: the worker's boot id.
        besides: the names of the work that it goes on with.

    Returns:
        Whether anything was uncertain.
    """
    if not has_uncertain_commit():
        return False
    end_leases([owner], besides=besides)
    clear_uncertain_commits()
    return True


def end_leases(
    owners: Sequence[str],
    *,
    running: Mapping[str, Lost] | None = None,
    besides: Collection[str] = (),
) -> None:
    """Release the work of these workers now, before their leases end.

    Args:
        owners: the workers' boot ids.
        running: the names of the work that was running, with the way each was lost. It may have killed its worker, so
            its attempt counts. The attempt of work that had not begun, or lost only its outcome, does not count.
        besides: the names of work whose leases stay.
    """
    now, running = database_now(), running or {}
    cut_off = [work for work, how in running.items() if how == Lost.CUT_OFF]
    lost = {work: how for work, how in running.items() if how != Lost.CUT_OFF}
    free = _releases(owners, besides)
    send([*charge_lost(owners, lost, now), *_noted(owners, cut_off), *free])


def _releases(owners: Sequence[str], besides: Collection[str]) -> Iterator[Statement]:
    """Release all work of lost workers uncharged, except for some; it keeps its place."""
    freed = {"owner": "", "attempt": Raw("attempt - 1")}
    for table in WORK:
        held = _held(owners, all_but(table, besides))
        unbegun = UNBEGUN if table is step_runs else {}
        place = {"wake_at": front(table)}
        yield table.update(freed | place | unbegun, {}, None, held)


def _noted(owners: Sequence[str], cut_off: Collection[str]) -> Iterator[Statement]:
    """Mark begun steps as cut off: a step that must not run twice then waits for people."""
    keys = [pk for table, pk in map(locate, cut_off) if table is step_runs]
    for owner in owners if keys else ():
        running = {"owner": owner, "status": StepStatus.RUNNING}
        note = {"lost": Lost.CUT_OFF}
        yield step_runs.update(note, running, None, step_runs.keyed(keys))


def charge_lost(
    owners: Sequence[str], lost: Mapping[str, Lost], now: datetime
) -> Iterator[Statement]:
    """Release work that was running when its workers were lost: the attempt counts, and others go before the next.

    Args:
        owners: the workers' boot ids.
        lost: the names of the work, with the way each was lost.
        now: the database's time.
    """
    works = ((*locate(work), happened) for work, happened in lost.items())
    by_kind = group_by_key(((table, happened), pk) for table, pk, happened in works)
    for (table, happened), keys in by_kind.items():
        for owner in owners:
            yield from _charged(table, keys, owner, happened, now)


def all_but(table: Table[Any], works: Collection[str]) -> Condition:
    """Return the condition that excludes some rows of a table, by the names of the work."""
    found = [locate(work) for work in works]
    keys = [pk for its_table, pk in found if its_table is table]
    return table.keyed(keys, but_for=True) if keys else ALL


UNBEGUN = {"status": Raw("CASE WHEN status = 'running' THEN 'ready' ELSE status END")}
"""A step that was claimed and not begun is ready again; only a begun step may have had an effect."""


def _charged(
    table: Table[Any], keys: list[Any], owner: str, happened: Lost, now: datetime
) -> list[Statement]:
    mine, these = {"owner": owner}, table.keyed(keys)
    freed = {"owner": "", "wake_at": now}
    if table is not step_runs:
        return [table.update(freed, mine, None, these)]
    # A process manager's visit waits for its deadline; a workflow's visit has lost an attempt.
    lost = freed | lost_columns(happened, HOW_LOST[happened])
    running = {**mine, "status": StepStatus.RUNNING}
    return [
        table.update(lost, running, None, these),
        table.update(freed, mine, None, these),
    ]


def locate(work: str) -> tuple[Table[Any], Any]:
    """Return the table and the key of the piece of work with this name."""
    model, _, pk = work.partition(":")
    table = next(table for table in WORK if table.model._meta.model_name == model)
    return table, table.model._meta.pk.to_python(pk)


HELD = "NOT owner = '' AND wake_at IS NOT NULL"
"""The condition of the index of claimed rows; without it a query may scan a million waiting rows."""


def _held(owners: Sequence[str], which: Condition = ALL) -> Condition:
    """The condition that these workers hold a row."""
    marks = ", ".join(["%s"] * len(owners))
    sql = f" AND {HELD} AND owner IN ({marks}){which.sql}"
    return Condition(sql, (*owners, *which.params))
