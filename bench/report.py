"""The figures of a measurement, as a table for a terminal, as JSON, and as a part of docs/performance.md."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import connection

from bench import clock
from bench.game import BenchFailed
from bench.measurement import MAIN, Measurement, Row

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"

TITLES = {
    MAIN: "a second",
    "cpu_ms": "CPU ms, workers",
    "database_cpu_ms": "CPU ms, PostgreSQL",
    "statements": "statements",
    "start_ms": "start, ms",
    "total_ms": "total ms",
    "gap_ms": "gap ms",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
    "last_p50_ms": "last ms",
    "shown_p50_ms": "shown p50 ms",
    "shown_p95_ms": "shown p95 ms",
    "paint_p50_ms": "first paint p50 ms",
    "paint_p95_ms": "p95 ms",
    "again_p50_ms": "again p50 ms",
    "web_mb": "web, MB",
    "supervisor_mb": "supervisor, MB",
    "worker_mb": "worker, MB",
    "call_mb": "caller, MB",
    "held_mb": "taking over, MB",
    "db_mb": "reports, MB",
    "old_mb": "pruner, MB",
    "after_call_p50_ms": "p50 ms after the call",
}
"""The titles of figures at the head of a table; others have their names."""

SETTINGS = "SELECT name, setting FROM pg_settings WHERE name IN ('server_version', 'synchronous_commit')"


def machine(busy: float) -> dict[str, str]:
    """Return the machine of the measurement, and how busy it was before."""
    found = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "cores": str(os.cpu_count()),
        "load before": f"{busy:.1f}",
        "python": platform.python_version(),
        "database": connection.vendor,
        "ends measured by": clock.time_source(),
    }
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(SETTINGS)
            known = dict(cursor.fetchall())
        found["database"] = f"PostgreSQL {known['server_version'].split()[0]}"
        found["synchronous_commit"] = known["synchronous_commit"]
    return found


def as_json(measured: Measurement, rows: Sequence[Row]) -> dict[str, Any]:
    """Return all figures, and those of each round."""
    return {
        "what": measured.name,
        "machine": machine(measured.busy),
        "games": {
            row.name: {
                "unit": row.unit,
                "medians": {
                    name: _figure(value) for name, value in row.figures.items()
                },
                "lowest": _figure(row.low),
                "highest": _figure(row.high),
            }
            for row in rows
        },
        "rounds": measured.played,
        "absent": list(measured.absent),
    }


def as_markdown(measured: Measurement, rows: Sequence[Row], processes: int) -> str:
    """Return a table of the figures, below the machine of the measurement."""
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    heads = ["", *(TITLES.get(name, name.replace("_", " ")) for name in names)]
    lines = [heads, ["---"] * len(heads)]
    for row in rows:
        cells = [_shown(row.figures.get(name)) for name in names]
        lines.append([f"{row.name} ({row.unit}s)", _with_spread(row), *cells[1:]])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    rounds = len(measured.played[rows[0].name])
    how = ", ".join(
        f"{name}: {value}" for name, value in machine(measured.busy).items()
    )
    said = [
        f"Medians of {rounds} interleaved rounds, {processes} workers; lowest and highest in brackets. {how}.",
        measured.note,
        *measured.absent,
    ]
    return "\n".join([*filter(None, said), "", table])


def write(name: str, text: str, page: Path = PAGE) -> None:
    """Put a text between the markers of a name.

    Raises:
        BenchFailed: the page has no such markers.
    """
    begin, end = f"<!-- bench {name} -->", f"<!-- end of bench {name} -->"
    marked = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    new, found = marked.subn(
        lambda _: f"{begin}\n\n{text}\n\n{end}", page.read_text(), count=1
    )
    if not found:
        raise BenchFailed(f"{page.name} has no place for it: add {begin} and {end}")
    page.write_text(new)


def _with_spread(row: Row) -> str:
    return f"{_shown(row.figures[MAIN])} ({_shown(row.low)}-{_shown(row.high)})"


def _shown(value: float | None) -> str:
    return "" if value is None else f"{_figure(value):,}"


def _figure(value: float) -> float:
    """Return a figure with three digits: a machine does not repeat more."""
    return round(value) if abs(value) >= 100 else float(f"{value:.3g}")
