"""The selections of bulk operations: each kind has a name, and finds its rows a chunk at a time.

The console registers its lists here, so that the code of a list also finds the rows for a bulk operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django.db.models import Model

from orchestrator.models import BulkItem, BulkVerdict, InboxEvent, ProcessInstance

SELECTIONS: dict[str, Selection] = {}
"""All kinds of selection, by name."""


@dataclass(frozen=True)
class Found:
    """One row that matches.

    Args:
        target: its key.
        revision: of a process, when the selection found it.
        key: its correlation key.
    """

    target: Any
    revision: int | None = None
    key: str = ""


@dataclass(frozen=True)
class Chunk:
    """Some of the rows that match.

    Args:
        found: the rows; a chunk may be empty and not the last one.
        after: the start of the next chunk; "" in the last chunk.
    """

    found: Sequence[Found]
    after: str


class Selection(ABC):
    """A kind of selection."""

    name: ClassVar[str]
    model: ClassVar[type[Model] | None] = None
    """The model of its rows; None if its rows may be of several models."""

    @abstractmethod
    def narrows(self, about: Mapping[str, Any]) -> bool:
        """Return whether the parameters have a condition; a bulk operation needs one."""

    @abstractmethod
    def chunk(
        self, about: Mapping[str, Any], until: datetime, after: str, size: int
    ) -> Chunk:
        """Return the next rows that match and have not changed since a moment.

        Args:
            about: the parameters of the selection.
            until: the moment of the page; a row that matches only since then is in no chunk.
            after: the `after` of the chunk before this one; "" for the first chunk.
            size: the most rows.
        """


def register_selection(selection: Selection) -> Selection:
    """Make a kind of selection known.

    Raises:
        ValueError: another kind has its name.
    """
    if selection.name in SELECTIONS:
        raise ValueError(f"there is already a selection {selection.name}")
    SELECTIONS[selection.name] = selection
    return selection


class FailedItems(Selection):
    """The items of an earlier bulk operation that have failed again."""

    name = "failed-items"

    def narrows(self, about: Mapping[str, Any]) -> bool:
        return bool(about.get("operation"))

    def chunk(
        self, about: Mapping[str, Any], until: datetime, after: str, size: int
    ) -> Chunk:
        rows = BulkItem.objects.filter(
            operation=UUID(about["operation"]),
            verdict=BulkVerdict.FAILED,
            pk__gt=int(after or 0),
        )
        items = list(rows.order_by("pk")[:size])
        processes = ProcessInstance.objects.only("revision", "correlation_key")
        known = processes.in_bulk([item.process_id for item in items])
        events = InboxEvent.objects.only("correlation_key")
        kept = events.in_bulk([item.event_id for item in items if item.event_id])
        found = [
            Found(one.pk, one.revision, one.correlation_key)
            for item in items
            if (one := known.get(item.process_id))
        ]
        found += [Found(one.pk, None, one.correlation_key) for one in kept.values()]
        return Chunk(found, str(items[-1].pk) if len(items) == size else "")


failed_items = register_selection(FailedItems())
