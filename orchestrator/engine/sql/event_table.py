"""Claiming events in the order of their receipts.

An event comes after all earlier undecided events of its process, whether they name the process by its id or by its key.
Events name a process that does not exist yet by the same id or key; the event that starts it has both. The model
defines undecided events and their indexes.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from orchestrator.engine.sql.row_statements import Condition
from orchestrator.engine.sql.table import Table
from orchestrator.models import InboxEvent, ProcessInstance

T = TypeVar("T")

UNDECIDED = "wake_at IS NOT NULL AND handled_at IS NULL"
UNDECIDED_OF_KEY = f"{UNDECIDED} AND NOT (correlation_key = '')"
"""The conditions of the indexes of undecided events, word by word: else SQLite does not use the indexes."""

BY_ID = Condition(f" AND {UNDECIDED}", ())
BY_KEY = Condition(f" AND {UNDECIDED_OF_KEY}", ())
"""The undecided events of one process, found through the index of its id or of its key."""


class EventTable(Table[InboxEvent]):
    """The statements of the inbox."""

    def __init__(self) -> None:
        super().__init__(InboxEvent)

    def besides(
        self, ids: Collection[UUID], keys: Collection[tuple[str, str]]
    ) -> Condition:
        """Return the condition that excludes the events of some processes, by id, or by target and correlation key."""
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
        """The column with the keys of older undecided events of a claimed event's process, at most a batch."""
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
        keys = "GROUP_CONCAT(id)"
        if vendor == "postgresql":
            keys = "STRING_AGG(id::text, ',')"
        return f", (SELECT {keys} FROM ({found}) AS ahead)"  # noqa: S608  # names are the models'


def _padded(values: Collection[T]) -> list[T]:
    """The values, with the last one repeated up to a power of two, so that few different statements exist."""
    found = list(values)
    return found + found[-1:] * ((1 << (len(found) - 1).bit_length()) - len(found))
