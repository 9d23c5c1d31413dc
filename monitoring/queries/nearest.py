"""The processes that an event which nothing took may have been meant for, and what it would lead to in each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from monitoring.masking import names_of
from monitoring.queries.graphs import labels_of
from monitoring.queries.instances.filters import LIVE
from orchestrator import registry, secret_names
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
        return preview_text(self.preview, labels_of(self.process.definition))


def preview_text(found: Preview, labels: Mapping[str, str]) -> str:
    """What an event would lead to in a process with these steps, in words."""
    step, to = labels.get(found.step, found.step), labels.get(found.to, found.to)
    words = {
        "started": _("It would start one, which would then stand in %(to)s."),
        "unrouted": _("There is none that takes it: it would be kept until one does."),
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
        if one.pk not in found and (alike := _alike(event, one))
    ]
    scored.sort(key=lambda each: (len(each[0]), each[1].pk), reverse=True)
    some = [*found.values(), *((one, False, alike) for alike, one in scored)]
    return [
        Near(one, by, tuple(alike), preview(event.type, event.body, one))
        for one, by, alike in some[:SHOWN]
    ]


def _texts(event: InboxEvent) -> list[str]:
    """What may be a key: the event's own, then the texts among its fields."""
    hidden = secret_names.of_message(event.type)
    body = event.body.items() if isinstance(event.body, dict) else ()
    fields = [value for name, value in body if name not in hidden]
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
    number = LOOKED_AT // max(len(names), 1) or 1
    found = {}
    for name in names:
        some = ProcessInstance.objects.filter(pk__in=_newest(name, number))
        found[name] = list(_with_definitions(some))
    return found


def _newest(name: str, number: int) -> list[UUID]:
    """The keys of the newest processes of a definition that go on: those of each status, as their index has them."""
    found: list[UUID] = []
    for status in LIVE:
        # A range of one, or PostgreSQL would go through all processes, newest first.
        rows = ProcessInstance.objects.live().filter(name__range=(name, name))
        rows = rows.filter(status=status).order_by("name", "status", "-pk")
        found += rows.values_list("pk", flat=True)[:number]
    return sorted(found, reverse=True)[:number]


def _with_definitions(rows: Any) -> Any:
    return rows.select_related("definition").defer("definition__graph")


def _alike(event: InboxEvent, process: ProcessInstance) -> list[str]:
    """The fields of the same name with the same value, other than nothing; no secret ones."""
    body, data = event.body, process.data
    if not isinstance(body, dict) or not isinstance(data, dict):
        return []
    hidden = secret_names.of_message(event.type) | names_of(process.definition)
    return [
        name
        for name, value in body.items()
        if name not in hidden
        and value not in ("", None, [], {})
        and data.get(name) == value
    ]
