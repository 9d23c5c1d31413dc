"""The export of a tree of processes, as of one moment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.utils.duration import duration_iso_string

from orchestrator.engine.sql.batch import chunks, database_now
from orchestrator.engine.sql.connection import LONG_IDLE, allow_idle
from orchestrator.engine.transfer.due_work import check_settled
from orchestrator.engine.transfer.form import FORMAT, KIND, PARTS, ExportedTable
from orchestrator.exceptions import OperationRefused
from orchestrator.models import ProcessInstance

AT_ONCE = 500
"""Processes in one query, and rows in memory."""

Write = Callable[[bytes], object]

Expect = Callable[[int], object]
"""Takes the number of rows before the first is written."""


def write_export(
    process_id: UUID, write: Write, expect: Expect | None = None
) -> dict[str, Any]:
    """Write a process with its sub-processes; return the time and the numbers of rows. Call it within a snapshot.

    Args:
        process_id: the process.
        write: takes each line.
        expect: takes the number of rows, for a progress bar; None counts no rows.

    Raises:
        OperationRefused: the process is missing or is a sub-process, or an ended process of the tree has due work.
    """
    allow_idle(LONG_IDLE)
    tree = _tree(process_id)
    check_settled(tree)
    if expect is not None:
        expect(_number(tree))
    now = database_now()
    lines = _Lines(write)
    lines.add(_head(tree, now))
    counts = {part.name: lines.add_all(_rows(part, tree)) for part in PARTS}
    end = {"end": lines.number, "sha256": lines.checksum.hexdigest()}
    write(_line(end))
    return {"exported_at": now.isoformat(), "rows": counts}


def _head(tree: list[UUID], now: datetime) -> dict[str, Any]:
    """The first line."""
    of_tree = {"process": tree[0], "processes": len(tree)}
    return {"procession": KIND, "format": FORMAT, "exported_at": now, **of_tree}


def _tree(process_id: UUID) -> list[UUID]:
    """The process ids of a tree, level by level, those of a level in order."""
    root = ProcessInstance.objects.filter(pk=process_id).only("parent_id").first()
    if root is None:
        raise OperationRefused("there is no process %(process)s", process_id)
    if root.parent_id is not None:
        raise OperationRefused(
            "it is a part of the process %(process)s: export that one, which takes its parts with it",
            root.parent_id,
        )
    tree, level = [process_id], [process_id]
    while level:
        below: list[UUID] = []
        for some in chunks(level, AT_ONCE):
            children = ProcessInstance.objects.filter(parent__in=some).order_by("pk")
            below += children.values_list("pk", flat=True)
        level = sorted(below)
        tree += level
    return tree


def _rows(part: ExportedTable, tree: list[UUID]) -> Generator[dict[str, Any]]:
    if part.name == "process":
        yield from _processes(part, tree)
        return
    for some in chunks(tree, AT_ONCE):
        rows = _of(part, some).order_by("pk").values(*part.columns)
        for row in rows.iterator(AT_ONCE):
            yield {"row": part.name, **row}


def _of(part: ExportedTable, some: Sequence[UUID]) -> QuerySet[Any]:
    """The rows of a table that belong to some processes."""
    mine = Q(**{f"{part.process}__in": some})
    if part.stray:
        # An operator may have acted on an event before the event had found its process.
        mine |= Q(instance=None, event__process__in=some)
    return part.model._default_manager.filter(mine)


def _number(tree: list[UUID]) -> int:
    return sum(
        _of(part, some).count() for part in PARTS for some in chunks(tree, AT_ONCE)
    )


NAMED = ("name", "version", "kind", "fingerprint")


def _processes(part: ExportedTable, tree: list[UUID]) -> Iterator[dict[str, Any]]:
    """The processes, each after its parent, with definition and owner by their names."""
    owner = f"owner__{get_user_model().USERNAME_FIELD}"
    asked = [*part.columns, owner, *(f"definition__{name}" for name in NAMED)]
    for some in chunks(tree, AT_ONCE):
        found = {row["id"]: row for row in _of(part, some).values(*asked)}
        for row in (found[pk] for pk in some):
            definition = {name: row.pop(f"definition__{name}") for name in NAMED}
            beside = {"definition": definition, "owner": row.pop(owner)}
            yield {"row": part.name, **row, **beside}


class _Lines:
    """The written lines: their number and their checksum."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self.number = 0
        self.checksum = hashlib.sha256()

    def add(self, value: dict[str, Any]) -> None:
        line = _line(value)
        self.checksum.update(line)
        self.number += 1
        self._write(line)

    def add_all(self, values: Generator[dict[str, Any]]) -> int:
        before = self.number
        # After an error, the generator would close its cursor later, in another transaction.
        with closing(values):
            for value in values:
                self.add(value)
        return self.number - before


def _line(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, default=_as_text, ensure_ascii=False) + "\n").encode()


def _as_text(value: object) -> str:
    """Return the exact text of a value that JSON has no form for."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return duration_iso_string(value)
    return str(value)
