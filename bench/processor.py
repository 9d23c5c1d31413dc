"""Processor time, which a busy machine does not stretch as it does the clock: of processes, PostgreSQL and Redis.

It is read where Linux shows it, and is left out elsewhere or when a server runs on another machine.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from django.db import connection

PROC = Path("/proc")
PARENT, TIMES = 1, slice(11, 15)
"""Where in a process's `stat`, after its name, its parent and its own and its ended children's times stand."""

SESSIONS = """
    SELECT pid FROM pg_stat_activity
    WHERE datname IN (current_database(), current_database() || '_peers') OR backend_type = 'walwriter'
"""
HERE = "SELECT COALESCE(host(inet_server_addr()), '127.0.0.1') IN ('127.0.0.1', '::1')"


class Stat(NamedTuple):
    """A process as Linux describes it: its parent, and seconds of processor time, its ended children's included."""

    parent: int
    seconds: float


def of_family(pids: Collection[int]) -> float | None:
    """Seconds that these processes and all that descend from them have used; None where nobody says."""
    if not PROC.exists():
        return None
    known = {int(p.name): _stat(p) for p in PROC.iterdir() if p.name.isdigit()}
    children = defaultdict[int, list[int]](list)
    for pid, stat in known.items():
        if stat is not None:
            children[stat.parent].append(pid)
    waiting, seconds = list(pids), 0.0
    while waiting:
        pid = waiting.pop()
        waiting += children[pid]
        stat = known.get(pid)
        seconds += stat.seconds if stat else 0.0
    return seconds


def of_database() -> dict[int, float]:
    """Seconds by process of the database server that works for this database; none where nobody says."""
    if connection.vendor != "postgresql":
        return {}
    with connection.cursor() as cursor:
        cursor.execute(HERE)
        if not cursor.fetchone()[0]:
            return {}
        cursor.execute(SESSIONS)
        return dict(_each(pid for (pid,) in cursor.fetchall()))


def since(before: dict[int, float]) -> float | None:
    """Seconds that the database server has used for this database since then; None where nobody says.

    The seconds of a session that has ended meanwhile are lost.
    """
    now = of_database()
    if not now:
        return None
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in now.items())


def _each(pids: Iterable[int]) -> Iterable[tuple[int, float]]:
    for pid in pids:
        stat = _stat(PROC / str(pid))
        if stat is not None:
            yield pid, stat.seconds


def _stat(process: Path) -> Stat | None:
    try:
        text = (process / "stat").read_text()
    except OSError:  # it has ended, or this is not Linux
        return None
    values = text.rpartition(") ")[2].split()
    ticks = sum(map(int, values[TIMES]))
    return Stat(int(values[PARENT]), ticks / os.sysconf("SC_CLK_TCK"))
