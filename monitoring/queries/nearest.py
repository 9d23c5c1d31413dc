"""The processes that an event which nothing took may have been meant for, and what it would lead to in each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from monitoring.queries.graphs import labels_of
from orchestrator import registry
from orchestrator.engine.operations import Preview, preview
from orchestrator.models import InboxEvent, ProcessInstance
from orchestrator.models.inbox_event import PROBLEMS

LOOKED_AT = 200
"""Processes whose data is compared with an event's: the newest that go on."""

SHOWN = 3
"""Processes that are shown for one event."""

VALUES = 20
"""Values of one event that are taken for keys."""

KEYS = 1_000
"""Keys that are looked for at once."""


@dataclass(frozen=True)
class Near:
    """A process near an event.

    Args:
        process: that goes on, and knows such an event.
        by_key: whether its key is the event's, or stands among its fields.
        alike: the fields in which its data and the event agree.
        preview: what the event would lead to.
    """

    process: ProcessInstance
    by_key: bool
    alike: tuple[str, ...]
    preview: Preview

    @property
    def why(self) -> str:
        """What makes it near."""
        if self.by_key:
            return _("same key")
        return _("same %(fields)s") % {"fields": ", ".join(self.alike)}

    @property
    def said(self) -> str:
        """What the event would lead to, in words."""
        return preview_text(self.preview, self.process)


def preview_text(found: Preview, process: ProcessInstance) -> str:
    """What an event would lead to in a process, in words."""
    labels = labels_of(process.definition)
    step, to = labels.get(found.step, found.step), labels.get(found.to, found.to)
    words = {
        "ignored": _("It would be ignored in %(step)s."),
        "rejected": _("It would be rejected in %(step)s."),
        "parked": _("It is not expected in %(step)s: it would be kept."),
        "ended": _("The process has ended."),
        "paused": _("The process is paused: it would be kept."),
        "not_known": _("No step of it takes such an event."),
        "failed": _("It cannot be decided: %(why)s"),
    }
    if found.outcome == "moved":
        text = (
            _("It would move it from %(step)s to %(to)s.")
            if found.to
            else _("%(step)s would take it.")
        )
    else:
        text = words[found.outcome]
    return text % {"step": step, "to": to, "why": found.why}


def nearest(events: Iterable[InboxEvent]) -> dict[int, list[Near]]:
    """The processes near each of some events by the key of the event; bounded looks for all events together."""
    events = [event for event in events if event.verdict in PROBLEMS]
    texts = {event.pk: _texts(event) for event in events}
    by_key = _by_key({text for some in texts.values() for text in some})
    live = _live(events)
    return {event.pk: _near(event, texts[event.pk], by_key, live) for event in events}


def _near(
    event: InboxEvent,
    texts: list[str],
    by_key: Mapping[str, list[ProcessInstance]],
    live: Mapping[str, list[ProcessInstance]],
) -> list[Near]:
    names = {definition.name for definition in registry.interested(event.type)}
    keyed = [one for text in texts for one in by_key.get(text, ()) if one.name in names]
    found = {one.pk: (one, True, ()) for one in keyed}
    scored = [
        (alike, one)
        for name in names
        for one in live.get(name, ())
        if one.pk not in found and (alike := _alike(event.body, one.data))
    ]
    scored.sort(key=lambda each: (len(each[0]), each[1].pk), reverse=True)
    some = [*found.values(), *((one, False, alike) for alike, one in scored)]
    return [
        Near(one, by, tuple(alike), preview(event.type, event.body, one))
        for one, by, alike in some[:SHOWN]
    ]


def _texts(event: InboxEvent) -> list[str]:
    """What may be a key: the event's own, then the texts among its fields."""
    fields = event.body.values() if isinstance(event.body, dict) else ()
    texts = [one for one in fields if isinstance(one, str) and 0 < len(one) <= 200]
    return [
        one for one in dict.fromkeys([event.correlation_key, *texts[:VALUES]]) if one
    ]


def _by_key(keys: set[str]) -> dict[str, list[ProcessInstance]]:
    rows = ProcessInstance.objects.live().exclude(correlation_key="")
    some = rows.filter(correlation_key__in=sorted(keys)[:KEYS]) if keys else rows.none()
    found = defaultdict(list)
    for one in _with_definitions(some)[:KEYS]:
        found[one.correlation_key].append(one)
    return found


def _live(events: list[InboxEvent]) -> dict[str, list[ProcessInstance]]:
    """The newest processes that go on of the definitions that know the types."""
    types = {event.type for event in events}
    names = {one.name for kind in types for one in registry.interested(kind)}
    found = {}
    for name in names:
        rows = ProcessInstance.objects.live().filter(name=name)
        newest = rows.order_by("-pk").values("pk")[: LOOKED_AT // len(names) or 1]
        some = ProcessInstance.objects.filter(pk__in=newest)
        found[name] = list(_with_definitions(some))
    return found


def _with_definitions(rows: Any) -> Any:
    return rows.select_related("definition").defer("definition__graph")


def _alike(body: Any, data: Any) -> list[str]:
    """The fields of the same name with the same value, other than nothing."""
    if not isinstance(body, dict) or not isinstance(data, dict):
        return []
    return [
        name
        for name, value in body.items()
        if value not in ("", None, [], {}) and data.get(name) == value
    ]
