"""Repeats of events: the same event under the same id, whichever release has stored it first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.definition.codec import canonical_json, encode, text_digest
from orchestrator.engine.storage.stored_values import read_event
from orchestrator.models import InboxEvent


def content_of(kind: str, full: object, process_id: str, key: str) -> str:
    """Return the text whose checksum tells an event from others with its id.

    Args:
        kind: its type.
        full: the full form of its body.
        process_id: the process that its sender named; "" for none.
        key: the correlation key that its sender named; "" for none.
    """
    return canonical_json([kind, full, process_id, key])


def full_forms(
    full: Mapping[str, Any], body: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the forms of which releases may have made the checksum of a stored event, the newest first.

    A form has the fields that are stored, and the first of those that are left out today, since new fields come last.

    Args:
        full: the event in the form of the running code, with all its fields.
        body: the stored fields.
    """
    left_out = [name for name in full if name not in body]
    for number in range(len(left_out), -1, -1):
        yield {**body, **{name: full[name] for name in left_out[:number]}}


def is_repeat(row: InboxEvent, sent: InboxEvent, process_id: str, key: str) -> bool:
    """Return whether a stored event is the one that is sent again, to the same addressee.

    Another release may have stored it in another form, and made its checksum of that.

    Args:
        row: the stored event.
        sent: a row of the event that is sent, not stored.
        process_id, key: the process and the correlation key that its sender names; "" for none.
    """
    if sent.starts and row.starts and row.target != sent.target:
        return False
    if row.body_hash == sent.body_hash:
        return True
    try:
        full, wanted = encode(read_event(row)), encode(read_event(sent))
    except Exception:  # noqa: BLE001  # the class's own checks may raise anything
        return False
    if canonical_json(full) != canonical_json(wanted):
        return False
    texts = (
        content_of(row.type, form, process_id, key)
        for form in full_forms(full, row.body)
    )
    return any(text_digest(text) == row.body_hash for text in texts)
