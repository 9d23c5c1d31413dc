"""What a bulk operation is done to: named kinds of selections, each of which finds its rows a chunk at a time.

The console has lists and registers them here, so that what is gathered is found by the code that has shown it.
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
"""All kinds, by name."""


@dataclass(frozen=True)
class Found:
    """One row that matches.

    Args:
        target: its key.
        revision: of a process, as it is found.
        key: its correlation key.
    """

    target: Any
    revision: int | None = None
    key: str = ""


@dataclass(frozen=True)
class Chunk:
    """Some of the rows that match.

    Args:
        found: those; there may be none in a chunk that is not the last one.
        after: where the next chunk begins; "" when this was the last one.
    """

    found: Sequence[Found]
    after: str


class Selection(ABC):
    """A kind of selection."""

    name: ClassVar[str]
    model: ClassVar[type[Model] | None] = None
    """Of what its rows are; None where that is not always the same."""

    @abstractmethod
    def narrows(self, about: Mapping[str, Any]) -> bool:
        """Whether it says anything: a selection of everything is refused."""

    @abstractmethod
    def chunk(
        self, about: Mapping[str, Any], until: datetime, after: str, size: int
    ) -> Chunk:
        """Finds the next rows that match and have not changed since a moment.

        Args:
            about: what is selected.
            until: when it was shown; what matches only since then is not found.
            after: where the chunk before this one has ended; "" for the first one.
            size: how many rows at most.
        """


def register_selection(selection: Selection) -> Selection:
    """Makes a kind of selection known.

    Raises:
        ValueError: there is one of that name.
    """
    if selection.name in SELECTIONS:
        raise ValueError(f"there is already a selection {selection.name}")
    SELECTIONS[selection.name] = selection
    return selection


class FailedItems(Selection):
    """What has failed again in an earlier bulk operation."""

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
            Found(process.pk, process.revision, process.correlation_key)
            for item in items
            if (process := known.get(item.process_id))
        ]
        found += [
            Found(event.pk, None, event.correlation_key) for event in kept.values()
        ]
        return Chunk(found, str(items[-1].pk) if len(items) == size else "")


failed_items = register_selection(FailedItems())
