"""The processes to which an event without a process may belong, and its effect on each of them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, cast
from uuid import UUID

from django.utils.translation import gettext as _

from monitoring.base.graphs import labels_of
from monitoring.base.masking import names_of
from monitoring.base.requests import parse_uuid
from monitoring.queries.any_of import any_of
from monitoring.queries.counts import MARK, ForEach, count_by
from monitoring.queries.lists import parse_number
from monitoring.queries.processes import ProcessPlace, process_rows
from orchestrator import registry, secret_names
from orchestrator.containers import group_by_key
from orchestrator.engine.operations import Preview, preview_event
from orchestrator.models import Definition, InboxEvent, ProcessInstance, Status
from orchestrator.models.inbox_event import PROBLEMS
from orchestrator.models.process_instance import (
    LIVE,
    NEWEST_FIRST,
    ProcessInstanceQuerySet,
)

LOOKED_AT = 200
"""The number of newest live processes whose data is compared with the data of an event."""

SHOWN = 3
"""The number of processes that are shown for one event."""

VALUES = 20
"""The number of values of one event that may be keys."""

COLUMNS = ("pk", "name", "definition_id", "correlation_key", "data")

SPELLED = 10
"""The number of events on a page for which similar keys are looked for."""

COMPARED = 64
"""The maximum length of a key that is compared with others: the time grows with the square of it."""

SIMILAR = 0.8
"""The ratio of equal characters above which two keys are similar."""

KEYS = 1_000
"""The maximum number of keys in one statement."""


@dataclass(frozen=True)
class PossibleProcess:
    """A process that an event may belong to.

    Args:
        process: a live process that knows events of this type, or one that the reader has named.
        why: why the event may belong to it.
        preview: the effect of the event on it.
    """

    process: ProcessInstance
    why: str
    preview: Preview

    @property
    def said(self) -> str:
        """The effect of the event, in words."""
        return preview_text(self.preview, labels_of(self.process.definition))


def preview_text(found: Preview, labels: Mapping[str, str]) -> str:
    """Return the effect of an event on a process with these steps, in words."""
    step, to = labels.get(found.step, found.step), labels.get(found.to, found.to)
    words = {
        "started": _("It would start one, which would then stand in %(to)s."),
        "unrouted": _("There is none that takes it: it would be kept until one does."),
        "missing": _("There is none that takes it: it would be ignored."),
        "ignored": _("It would be ignored in %(step)s.")
        if found.step
        else _("The process has ended: it would be ignored."),
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


def possible_processes(
    events: Iterable[InboxEvent],
) -> dict[int, list[PossibleProcess]]:
    """Return the processes that each event may belong to, by the event's key; the lookups are bounded."""
    events = [event for event in events if event.verdict in PROBLEMS]
    texts = {event.pk: _key_texts(event) for event in events}
    by_key = _by_key({text for some in texts.values() for text in some})
    live = LiveData(_interested_names(events))
    alike = {event.pk: live.alike(event) for event in events}
    lost = [
        one for one in events if not alike[one.pk] and not by_key.keys() & texts[one.pk]
    ]
    spelled = {event.pk: live.spelled_alike(event) for event in lost[:SPELLED]}
    best = {pk for some in alike.values() for pk in list(some)[:SHOWN]}
    best |= {pk for some in spelled.values() for pk in some}
    known = process_rows().in_bulk(best) if best else {}
    return {
        event.pk: [
            *_possible_for(event, texts[event.pk], by_key, alike[event.pk], known),
            *(
                _possible(event, known[pk], _("a similar key"))
                for pk in spelled.get(event.pk, ())
                if pk in known
            ),
        ]
        for event in events
    }


def event_to_deliver(key: str) -> InboxEvent | None:
    """Return the event with this key, if no process took it."""
    number = parse_number(key, 18)
    rows = InboxEvent.objects.filter(verdict__in=PROBLEMS)
    return None if number is None else rows.filter(pk=number).first()


def named_processes(event: InboxEvent, name: str) -> list[PossibleProcess]:
    """Return the processes with this id or key, live ones before ended ones, with the effect of an event on each."""
    rows, pk = process_rows(), parse_uuid(name)
    found = list(rows.filter(pk=pk)) if pk is not None else []
    # The condition on an empty key lets the database use the index of keys.
    keyed = rows.filter(correlation_key=name).exclude(correlation_key="")
    found = found or list(keyed.live().newest_first()[:SHOWN])
    found = found or list(keyed.ended().newest_first()[:SHOWN])
    return [_possible(event, one, _("as you named it")) for one in found]


def _possible(event: InboxEvent, process: ProcessInstance, why: str) -> PossibleProcess:
    return PossibleProcess(process, why, preview_event(event.type, event.body, process))


def _interested_names(events: Iterable[InboxEvent]) -> set[str]:
    """Return the names of the definitions that know events of these types."""
    types = {event.type for event in events}
    return {one.name for kind in types for one in registry.receivers(kind)}


def _possible_for(
    event: InboxEvent,
    texts: list[str],
    by_key: Mapping[str, list[ProcessInstance]],
    alike: Mapping[UUID, list[str]],
    known: Mapping[UUID, ProcessInstance],
) -> list[PossibleProcess]:
    names = _interested_names([event])
    keyed = [one for text in texts for one in by_key.get(text, ()) if one.name in names]
    found = {one.pk: (one, _("same key")) for one in keyed}
    for pk, fields in alike.items():
        if pk in known:
            why = _("same %(fields)s") % {"fields": ", ".join(fields)}
            found.setdefault(pk, (known[pk], why))
    return [_possible(event, one, why) for one, why in list(found.values())[:SHOWN]]


class LiveData:
    """The data of the newest live processes, indexed by field and value.

    Args:
        names: of the definitions.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._having = defaultdict[tuple[str, str, Hashable], list[UUID]](list)
        self._of: dict[UUID, int] = {}
        self._keys: dict[str, dict[str, UUID]] = defaultdict(dict)
        number = LOOKED_AT // max(len(names), 1) or 1
        some = ProcessInstance.objects.filter(any_of("pk", _newest(names, number)))
        for pk, name, of, key, data in some.values_list(*COLUMNS):
            self._of[pk] = of
            self._keys[name][key] = pk
            for field, value in data.items() if isinstance(data, dict) else ():
                self._having[name, field, _hashable(value)].append(pk)
        stored = Definition.objects.defer("graph").in_bulk(set(self._of.values()))
        self._hidden = {of: names_of(one) for of, one in stored.items()}

    def alike(self, event: InboxEvent) -> dict[UUID, list[str]]:
        """Return the processes with fields equal to fields of an event, and these fields; most equal fields first.

        Secret fields are not compared.
        """
        found = defaultdict[UUID, list[str]](list)
        names = _interested_names([event])
        for field, value in _fields(event):
            for name in names:
                for pk in self._having.get((name, field, _hashable(value)), ()):
                    if field not in self._hidden.get(self._of[pk], ()):
                        found[pk].append(field)
        best = sorted(found, key=lambda pk: (len(found[pk]), pk), reverse=True)
        return {pk: found[pk] for pk in best}

    def spelled_alike(self, event: InboxEvent) -> list[UUID]:
        """Return the processes whose keys are similar to the key of an event, the most similar first."""
        keys = {
            key: pk
            for name in _interested_names([event])
            for key, pk in self._keys[name].items()
            if 0 < len(key) <= COMPARED
        }
        given = event.correlation_key
        compares = 0 < len(given) <= COMPARED
        near = get_close_matches(given, keys, SHOWN, SIMILAR) if compares else []
        return [keys[key] for key in near]


def _hashable(value: Any) -> Hashable:
    if isinstance(value, dict | list):
        # With its type: a text may read the same.
        return type(value).__name__, json.dumps(value, sort_keys=True)
    return cast("Hashable", value)


def _key_texts(event: InboxEvent) -> list[str]:
    """Return the possible keys: the key of the event, then the texts among its fields."""
    hidden = secret_names.message_secrets(event.type)
    body = event.body.items() if isinstance(event.body, dict) else ()
    fields = [value for name, value in body if name not in hidden]
    texts = [one for one in fields if isinstance(one, str) and 0 < len(one) <= 200]
    return [
        one for one in dict.fromkeys([event.correlation_key, *texts[:VALUES]]) if one
    ]


def _by_key(keys: set[str]) -> dict[str, list[ProcessInstance]]:
    rows = process_rows().live().exclude(correlation_key="")
    some = rows.filter(correlation_key__in=sorted(keys)[:KEYS]) if keys else rows.none()
    return group_by_key((one.correlation_key, one) for one in some[:KEYS])


def _of_status(status: Status) -> ProcessInstanceQuerySet:
    """Return the live processes of a definition with a status, in the order of an index, newest first."""
    # A range of one value: PostgreSQL would otherwise scan all processes, newest first.
    rows = ProcessInstance.objects.live().filter(name__range=(MARK, MARK))
    return rows.filter(status=status).order_by("name", "status", *NEWEST_FIRST)


EACH_STATUS = [partial(_of_status, status) for status in LIVE]


def _newest(names: Collection[str], number: int) -> list[UUID]:
    """Return the keys of the newest live processes of each definition, in one statement."""
    parts = [ForEach(rows, sorted(names), alike=True) for rows in EACH_STATUS]
    read = count_by(parts, "name", "started_at", "id", cap=number)
    found = group_by_key(
        (name, ProcessPlace.from_sql(at, key)) for name, at, key, _count in read
    )
    return [one.pk for places in found.values() for one in sorted(places)[-number:]]


def _fields(event: InboxEvent) -> list[tuple[str, Any]]:
    """Return the fields of an event with values, without secret and empty ones."""
    if not isinstance(event.body, dict):
        return []
    secret = secret_names.message_secrets(event.type)
    return [
        (name, value)
        for name, value in event.body.items()
        if name not in secret and value not in ("", None, [], {})
    ]
