"""The invariant of the checksums of events, by which repeats are told from other events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import islice
from typing import Any
from uuid import UUID

from orchestrator import registry
from orchestrator.definition.codec import decode, encode, text_digest
from orchestrator.engine.invariants.stored_sets import WHOLE, StoredPart, pages_by_key
from orchestrator.engine.storage.repeats import content_of, full_forms
from orchestrator.models import InboxEvent

AT_ONCE = 500
"""Events in one query."""


def body_hashes(part: StoredPart = WHOLE) -> Iterator[str]:
    """I1: an event has the checksum of its content.

    A checksum is made of all fields that the event had when it was stored. The running code may have other fields. So
    an event is reported only if the events of its type just before it and just after it have the right checksum.
    No sender repeats the event of a command, so its checksum is not read.
    """
    rows = part.of(InboxEvent.objects.exclude(source="command"), "process")
    columns = ("pk", "type", "body", "body_hash", "process_id", "correlation_key")
    found: list[int] = []
    doubted: dict[str, list[int]] = defaultdict(list)
    sound: set[str] = set()
    for page in pages_by_key(rows.values_list(*columns, named=True), AT_ONCE):
        for row in page:
            right = _is_right(row)
            if right is False:
                doubted[row.type].append(row.pk)
            elif right:
                between = doubted.pop(row.type, [])
                found += between if row.type in sound and len(between) == 1 else []
                sound.add(row.type)
    for pk in islice(found, 20):
        yield f"event {pk} does not match its checksum"


def _is_right(row: Any) -> bool | None:
    """Return whether an event has its checksum; None if the running code cannot tell."""
    try:
        form = registry.event_class(row.type)
        if len(row.body) == len(fields(form)) and _fits(row, row.body):
            return True
        full: Mapping[str, Any] = encode(decode(form, row.body))
    except BaseException:  # noqa: BLE001  # the class's own checks may raise anything
        return None
    return any(_fits(row, content) for content in full_forms(full, row.body))


def _fits(row: Any, content: Mapping[str, Any]) -> bool:
    """Whether the checksum is that of a content, as one of the possible senders has addressed it."""
    stored, process, key = row.body_hash, _text(row.process_id), row.correlation_key
    addresses = dict.fromkeys((("", key), ("", ""), (process, ""), (process, key)))
    texts = (content_of(row.type, content, *address) for address in addresses)
    return any(text_digest(text) == stored for text in texts)


def _text(process: UUID | None) -> str:
    return "" if process is None else str(process)
