"""The line of each item of a notice, and cleaning of texts for one line."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from orchestrator.configuration.notice_settings import Topic
from orchestrator.text import Text, shortened, unpack_text

LONGEST = 300
TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of a text, and could disguise a name."""
NO_TEXT = ("Cc", "Cs", "Zl", "Zp")
"""Categories of characters that end a line or cannot be shown."""


def one_line(text: str, longest: int = LONGEST) -> str:
    """Return a text as one line: without line ends and control characters, and cut at a length."""
    plain = "".join(
        " " if one in TURNING or unicodedata.category(one) in NO_TEXT else one
        for one in text[: 4 * longest]
    )
    words = " ".join(plain.split())
    return shortened(words, longest)


def item_line(item: Mapping[str, Any], texts: Mapping[str, Any]) -> str:
    """Return the line of an item.

    Args:
        item: as the notice stores it.
        texts: the texts of the engine in the notice, as template and values, by their English.
    """
    message = unpack_text(item["message"], texts.get(item["message"]))
    if isinstance(message, Text):
        message = message.translated(_, lambda name, value: value)
    saying = next(_SAYING[topic] for topic in _SAYING if topic in item["topics"])
    return one_line(saying({**item, "message": message}))


def _process(item: Mapping[str, Any]) -> str:
    return one_line(
        f"{item['definition']} {item['correlation_key'] or item['process_id']}", 150
    )


def _escalation(item: Mapping[str, Any]) -> str:
    about = {"process": _process(item), "step": one_line(item["step"], 100)}
    if Topic.DEADLINE in item["topics"]:
        return (
            _("%(process)s was escalated: a deadline of the step %(step)s has passed")
            % about
        )
    said = _("%(process)s was escalated in the step %(step)s") % about
    return f"{said} ({item['message']})" if item["message"] else said


def _deadline(item: Mapping[str, Any]) -> str:
    about = {"process": _process(item), "step": one_line(item["step"], 100)}
    return _("%(process)s: a deadline of the step %(step)s has passed") % about


def _failure(item: Mapping[str, Any]) -> str:
    places = (one_line(item[place], 100) for place in ("definition", "step"))
    number = item["number"]
    about = {
        "where": ", ".join(filter(None, places)) or _("an event"),
        "message": one_line(item["message"], 180),
        "number": number,
    }
    if item["state"] == "more":
        return _("%(number)s failures so far in %(where)s: %(message)s") % about
    if item["state"] == "again":
        said = _("A failure is back in %(where)s: %(message)s") % about
    else:
        said = _("New failure in %(where)s: %(message)s") % about
    if number == 1:
        return said
    times = ngettext("%(number)s time so far", "%(number)s times so far", number)
    return f"{said} ({times % about})"


def _queue(item: Mapping[str, Any]) -> str:
    about = {"queue": one_line(item["queue"], 50)}
    if item["state"] == "back":
        return _("The queue %(queue)s is seen to again") % about
    if item["state"] == "clock":
        return str(item["message"])
    return _("Work is due on the queue %(queue)s, and no worker sees to it") % about


_SAYING: dict[Topic, Callable[[Mapping[str, Any]], str]] = {
    Topic.ESCALATION: _escalation,
    Topic.FAILURE: _failure,
    Topic.DEADLINE: _deadline,
    Topic.QUEUE: _queue,
}


def counts_text(counts: Mapping[str, int]) -> str:
    """Return the number of items of each topic in words."""
    said = {
        Topic.ESCALATION: lambda n: ngettext(
            "%(n)s escalation", "%(n)s escalations", n
        ),
        Topic.FAILURE: lambda n: ngettext(
            "%(n)s group of failures", "%(n)s groups of failures", n
        ),
        Topic.DEADLINE: lambda n: ngettext(
            "%(n)s passed deadline", "%(n)s passed deadlines", n
        ),
        Topic.QUEUE: lambda n: ngettext(
            "%(n)s change of a queue", "%(n)s changes of queues", n
        ),
    }
    return ", ".join(
        said[topic](counts[topic]) % {"n": counts[topic]}
        for topic in said
        if counts.get(topic)
    )
