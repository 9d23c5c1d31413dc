"""What a notice says, in the language of the site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from orchestrator.notices.lines import counted, line, one_line
from orchestrator.notices.links import page

LONGEST_SUBJECT = 150


@dataclass(frozen=True)
class Item:
    """One thing that happened.

    Args:
        topics: what it is: "escalation", "failure", "deadline", "queue"; a deadline may be an escalation too.
        state: of a group of failures "new", "again" or "more", of a queue "dead" or "back".
        text: all of it in a line.
        url: the page where it is seen; "" if the site's address is not known.
        definition: the name of the process's definition; "" if there is no process.
        process_id: the process; of a group of failures the first that was counted.
        correlation_key: its key.
        step: where it is.
        queue: the queue.
        kind: of the incident.
        error: the class of the error.
        place: the innermost function of the application that it was raised through.
        message: what the error says, or who escalated, and why.
        fingerprint: what all failures of the group have in common.
        number: how many of them there are.
        at: when, in ISO 8601.
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
    """What one recipient is told at once.

    Args:
        id: the same whenever it is sent again.
        recipient: its name in `PROCESSION_NOTICES`.
        subject: in a line of up to 150 letters.
        text: all of it, in lines.
        number: how many things it tells of.
        counts: the same by topic.
        items: the first 20 of them.
        at: when the first of them was noted.
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
        """The same as plain values, as a webhook sends it."""
        return {
            "type": "procession.notice",
            "timestamp": self.at.isoformat(),
            "data": {**asdict(self), "at": self.at.isoformat()},
        }


def compose(
    id: str,
    recipient: str,
    counts: Mapping[str, int],
    items: Sequence[Mapping[str, Any]],
    texts: Mapping[str, Any],
    at: datetime,
) -> NoticeMessage:
    """Puts a stored notice into words."""
    with translation.override(settings.LANGUAGE_CODE):
        told = [_item(stored, texts) for stored in items]
        number = sum(counts.values())
        subject = told[0].text if number == 1 else counted(counts)
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
    known = {**stored, "text": line(stored, texts), "url": _url(stored)}
    return Item(**{field.name: known[field.name] for field in fields(Item)})


def _url(item: Mapping[str, Any]) -> str:
    if item["process_id"]:
        return page("instance", item["process_id"])
    return page("definitions" if item["queue"] else "failures")


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
