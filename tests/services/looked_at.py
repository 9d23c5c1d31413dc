"""How much a piece of code has the database look at: rows on PostgreSQL, steps of the statements' programs on SQLite.

Neither depends on how busy the machine is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from django.db import connection

STEP = 10
"""SQLite tells of so many steps at a time."""


def looked_at(action: Callable[[], object]) -> int:
    """Return how much the database looks at while this is done."""
    return _steps(action) if connection.vendor == "sqlite" else _rows(action)


def _steps(action: Callable[[], object]) -> int:
    count = 0

    def note() -> int:
        nonlocal count
        count += STEP
        return 0

    connection.ensure_connection()
    database: Any = connection.connection
    database.set_progress_handler(note, STEP)
    try:
        action()
    finally:
        database.set_progress_handler(None, 0)
    return count


def _rows(action: Callable[[], object]) -> int:
    asked: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().startswith(("SELECT", "WITH")) and "orchestrator_" in sql:
            asked.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        action()
    return sum(map(_scanned, (n for one in asked for n in _nodes(_plan(*one)))))


def _plan(sql: str, params: Any) -> dict[str, Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params)
        (found,) = cursor.fetchone()
    return dict((json.loads(found) if isinstance(found, str) else found)[0]["Plan"])


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", []):
        yield from _nodes(part)


def _scanned(node: dict[str, Any]) -> int:
    """Count what a scan of a table or an index has found or passed over."""
    if not node["Node Type"].endswith("Scan") or node["Node Type"] == "CTE Scan":
        return 0
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    rows = node["Actual Rows"] + sum(node.get(name, 0) for name in removed)
    return int(rows * node["Actual Loops"])
