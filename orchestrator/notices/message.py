"""The message of a notice, in the language of the site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from orchestrator.notices.item_lines import counts_text, item_line, one_line
from orchestrator.notices.links import console_address

LONGEST_SUBJECT = 150

EVENT_KINDS = ("unexpected_event", "unrouted_event")
"""The kinds of incidents that are listed among the events if they have no process."""


@dataclass(frozen=True)
class Item:
    """One thing that happened.

    Args:
        topics: some of "escalation", "failure", "deadline" and "queue"; a deadline may be an escalation too.
        state: of a group of failures "new", "again" or "more", of a queue "dead" or "back"; "clock" if the
            database's clock went back.
        text: the whole item in a line.
        url: its page in the console; "" if the site's address is not known.
        definition: the name of the process's definition; "" if there is no process.
        process_id: the process; of a group of failures the first that was counted.
        correlation_key: its key.
        step: the step.
        queue: the queue.
        kind: of the incident.
        error: the class of the error.
        place: the innermost function of the application that raised it.
        message: the text of the error, or the reason of an escalation with its person.
        fingerprint: the fingerprint of the group of failures.
        number: the number of failures in the group.
        at: the time, in ISO 8601.
    """

    topics: Sequence[str]
    state: str
    text: str
    url: str
    definition: str
    process_id: str
    correlation_key: str
    step: str
    queue: str
    kind: str
    error: str
    place: str
    message: str
    fingerprint: str
    number: int
    at: str


@dataclass(frozen=True)
class NoticeMessage:
    """The message of one notice to one recipient.

    Args:
        id: the id, which stays the same when the message is sent again.
        recipient: the name in `PROCESSION_NOTICES`.
        subject: one line of up to 150 characters.
        text: the whole message, in lines.
        number: the number of things that happened.
        counts: the same by topic.
        items: the first 20 of them.
        at: the time of the first of them.
    """

    id: str
    recipient: str
    subject: str
    text: str
    number: int
    counts: Mapping[str, int]
    items: Sequence[Item]
    at: datetime

    def as_json(self) -> dict[str, Any]:
        """Return the message as JSON values, as a webhook sends it."""
        return {
            "type": "procession.notice",
            "timestamp": self.at.isoformat(),
            "data": {**asdict(self), "at": self.at.isoformat()},
        }


def compose_message(
    id: str,
    recipient: str,
    counts: Mapping[str, int],
    items: Sequence[Mapping[str, Any]],
    texts: Mapping[str, Any],
    at: datetime,
) -> NoticeMessage:
    """Return the message of a stored notice."""
    with translation.override(settings.LANGUAGE_CODE):
        told = [_item(stored, texts) for stored in items]
        number = sum(counts.values())
        subject = told[0].text if number == 1 else counts_text(counts)
        return NoticeMessage(
            id=id,
            recipient=recipient,
            subject=one_line(f"[Procession] {subject}", LONGEST_SUBJECT),
            text=_text(told, number, recipient),
            number=number,
            counts=dict(counts),
            items=told,
            at=at,
        )


def _item(stored: Mapping[str, Any], texts: Mapping[str, Any]) -> Item:
    known = {**stored, "text": item_line(stored, texts), "url": _url(stored)}
    return Item(**{field.name: known[field.name] for field in fields(Item)})


def _url(item: Mapping[str, Any]) -> str:
    if item["process_id"]:
        return console_address("instance", item["process_id"])
    if item["kind"] in EVENT_KINDS:
        return console_address("events")
    return console_address("definitions" if item["queue"] else "failures")


def _text(told: Sequence[Item], number: int, recipient: str) -> str:
    parts = ["\n".join(_lines(item)) for item in told]
    if left := number - len(told):
        more = ngettext("And %(number)s more.", "And %(number)s more in all.", left)
        parts.append(more % {"number": left})
    sign = _("To the recipient “%(name)s” of PROCESSION_NOTICES.")
    parts.append(f"-- \n{sign % {'name': one_line(recipient)}}")
    return "\n\n".join(parts) + "\n"


def _lines(item: Item) -> list[str]:
    at = timezone.localtime(datetime.fromisoformat(item.at))
    raised = one_line(" · ".join(filter(None, (item.error, item.place))))
    rest = (f"{at:%Y-%m-%d %H:%M:%S %Z}", raised, item.url)
    return [item.text, *(f"  {said}" for said in rest if said)]
