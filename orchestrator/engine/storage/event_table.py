"""Claiming events in the order of their receipts.

An event comes after all undecided ones of its process that were received before it, whether they name the process by
its id or by its key. A process that does not exist yet is known by what the events say; the one that starts it says
both. What is undecided, and by which index it is found, is told at the model.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from orchestrator.engine.storage.row_statements import Condition
from orchestrator.engine.storage.table import Table
from orchestrator.models import InboxEvent, ProcessInstance

T = TypeVar("T")

UNDECIDED = "wake_at IS NOT NULL AND handled_at IS NULL"
UNDECIDED_OF_KEY = f"{UNDECIDED} AND NOT (correlation_key = '')"
"""In the words of the indexes of undecided events: by other words SQLite does not find them."""

BY_ID = Condition(f" AND {UNDECIDED}", ())
BY_KEY = Condition(f" AND {UNDECIDED_OF_KEY}", ())
"""The undecided ones among those of one process, as its id or its key finds them by index."""


class EventTable(Table[InboxEvent]):
    """The statements of the inbox."""

    def __init__(self) -> None:
        super().__init__(InboxEvent)

    def besides(
        self, ids: Collection[UUID], keys: Collection[tuple[str, str]]
    ) -> Condition:
        """Those of all processes but some, by what the events name: the id, or target and correlation key."""
        sql, params = "", list[Any]()
        if ids:
            known = _padded(ids)
            marks = ", ".join(["%s"] * len(known))
            sql += f" AND (process_id IS NULL OR process_id NOT IN ({marks}))"
            params += [self._param(self.fields["process_id"], one) for one in known]
        if keys:
            pairs = _padded(keys)
            rows = ", ".join(["(%s, %s)"] * len(pairs))
            sql += f" AND (target, correlation_key) NOT IN (VALUES {rows})"
            params += [text for pair in pairs for text in pair]
        return Condition(sql, tuple(params))

    @cache  # noqa: B019  # there is one, for the life of the process
    def _ahead(self, vendor: str, limit: int) -> str:
        """The keys of the older undecided events of a claimed one's process, in one text; no more than a batch."""
        this, process = self.name, f'"{ProcessInstance._meta.db_table}"'
        # SQLite finds nothing by index for a column of the row that it returns, only for an expression.
        its = f"+{this}" if vendor == "sqlite" else this
        live = (
            f"(SELECT p.id FROM {process} AS p WHERE p.name = {its}.target AND p.finished_at IS NULL"  # noqa: S608  # names are the models'
            f" AND p.correlation_key = {its}.correlation_key AND NOT (p.correlation_key = ''))"
        )
        own = f"FROM {process} AS p WHERE p.id = {its}.process_id"
        by_id = f"process_id = COALESCE({this}.process_id, {live}) AND {UNDECIDED}"
        by_key = (
            f"target = COALESCE((SELECT p.name {own}), {this}.target) AND {UNDECIDED_OF_KEY}"
            f" AND correlation_key = COALESCE((SELECT p.correlation_key {own}), {this}.correlation_key)"
        )
        found = " UNION ".join(
            f"SELECT * FROM (SELECT id FROM {this} AS older WHERE {same} AND older.id < {this}.id"  # noqa: S608  # names are the models'
            f" ORDER BY id LIMIT {limit}) AS {name}"
            for name, same in (("by_id", by_id), ("by_key", by_key))
        )
        keys = (
            "STRING_AGG(id::text, ',')"
            if vendor == "postgresql"
            else "GROUP_CONCAT(id)"
        )
        return f", (SELECT {keys} FROM ({found}) AS ahead)"  # noqa: S608  # names are the models'


def _padded(values: Collection[T]) -> list[T]:
    """The values, the last one repeated until there are a power of two: so that there are few statements."""
    found = list(values)
    return found + found[-1:] * ((1 << (len(found) - 1).bit_length()) - len(found))
