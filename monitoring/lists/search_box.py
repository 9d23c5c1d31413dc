"""The search box: it finds things by id, key or name, and failures and processes by their words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from monitoring.base.access import names_of_operation
from monitoring.base.requests import parse_uuid
from monitoring.base.row_addresses import NO_CAUSE, place_of
from monitoring.base.translation import translate
from monitoring.lists.events.events import events_with_id
from monitoring.lists.failures.failures import AlikeFailures, groups_with_text
from monitoring.lists.failures.resolved_failures import resolved_with_text
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import process_page
from monitoring.lists.search_by_name import (
    NewestProcesses,
    definitions_named,
    with_id_from,
)
from monitoring.lists.search_hits import (
    SHORTEST,
    SHOWN,
    SearchHit,
    SearchHits,
    join_parts,
    process_hit,
)
from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    Incident,
    IssuedCommand,
    OutsideId,
    ProcessInstance,
    StepRun,
)

CAUSES = 20
"""The number of causes of failures that the page shows; no list has the others."""

JOBS: dict[str, Any] = {
    str(model._meta.model_name): model for model in (StepRun, IssuedCommand, InboxEvent)
}
"""The models of work by the first word of a job's name."""


@dataclass(frozen=True)
class Lookup:
    """A search.

    Args:
        text: an id, a key or its beginning, or words of an error message.
        events: whether the reader may see events.
        definitions: the definitions whose processes the reader may see; None for all.
    """

    text: str
    events: bool
    definitions: frozenset[str] | None = None

    def found(self) -> list[SearchHits]:
        """Return the matches by kind, without kinds that have none."""
        kinds, processes = [], set[UUID]()
        lists = [""] if self.definitions is None else sorted(self.definitions)
        for name in lists:
            filters = Filters(definition=name, q=self.text)
            rows = process_page(filters, size=SHOWN).rows
            kinds.append(_processes(filters, rows))
            processes |= {row.pk for row in rows}
        kinds += [
            definitions_named(self.text, self.definitions),
            with_id_from(self.text, self.definitions),
        ]
        newest = NewestProcesses([])
        if not processes:
            newest = NewestProcesses.read(self.definitions)
            kinds.append(newest.with_summary(self.text))
        if self.events:
            kinds.append(_events(self.text, processes))
        kinds += [*self._by_id(), *self._jobs(), *self._failures()]
        found = [kind for kind in kinds if kind.shown]
        if not found:
            found.append(newest.spelled_alike(self.text))
        return [kind for kind in found if kind.shown]

    def _shows(self, names: Collection[str]) -> bool:
        """Whether the reader may see rows of these definitions; an empty list means rows of no definition."""
        mine = self.definitions
        return mine is None or (bool(names) and mine.issuperset(names))

    def _by_id(self) -> Iterator[SearchHits]:
        """Yield commands and operations with this id."""
        if key := parse_uuid(self.text):
            yield SearchHits(_("Commands"), shown=list(self._commands(key)))
            yield SearchHits(_("Operations"), shown=list(self._operations(key)))

    def _commands(self, key: UUID) -> Iterator[SearchHit]:
        rows = IssuedCommand.objects.filter(pk=key).select_related("instance")
        for row in rows.defer("instance__data"):
            if self._shows_work(row) and (place := place_of(row)):
                yield SearchHit(place, row.type, str(row.instance or ""), row.status)

    def _operations(self, key: UUID) -> Iterator[SearchHit]:
        for row in BulkOperation.objects.filter(pk=key):
            if self.definitions is None or self._shows(names_of_operation(row.pk)):
                address = reverse("monitoring:bulk-operation", args=[row.pk])
                about = join_parts(row.actor_name, row.reason)
                yield SearchHit(
                    address, str(_label(row.action)), about, at=row.created_at
                )

    def _jobs(self) -> Iterator[SearchHits]:
        """Yield the piece of work with this name in workers, jobs and logs, as `steprun:17`."""
        kind, _colon, key = self.text.partition(":")
        model = JOBS.get(kind.lower())
        if model is None or (model is InboxEvent and not self.events):
            return
        field = model._meta.pk
        try:
            row = model._default_manager.filter(pk=field.to_python(key)).first()
        except (ValidationError, ValueError, OverflowError):
            return
        place = place_of(row) if row is not None and self._shows_work(row) else ""
        if row is not None and place:
            status = row.verdict if isinstance(row, InboxEvent) else row.status
            yield SearchHits(
                _("Jobs"), shown=[SearchHit(place, self.text, str(row), status)]
            )

    def _shows_work(self, row: StepRun | IssuedCommand | InboxEvent) -> bool:
        if self.definitions is None:
            return True
        process = row.process if isinstance(row, InboxEvent) else row.instance
        return self._shows([process.name] if process is not None else [])

    def _failures(self) -> Iterator[SearchHits]:
        """Yield the causes of the newest open incidents with this text, and of the last resolved failures."""
        if len(self.text) < SHORTEST:
            return
        groups = groups_with_text(self.text, CAUSES + 1, self.definitions)
        shown, more = groups[:CAUSES], len(groups) > CAUSES
        failed = [one for one in shown if not one.newest.is_about_event]
        yield SearchHits(_("Failures"), shown=list(_causes(failed)), more=more)
        if self.events:
            of_events = [one for one in shown if one.newest.is_about_event]
            kind = _("Events that no process took")
            yield SearchHits(kind, shown=list(_causes(of_events)), more=more)
        resolved = resolved_with_text(self.text, SHOWN + 1, self.definitions)
        yield SearchHits(
            _("Resolved failures"),
            shown=[_resolved(row) for row in resolved[:SHOWN]],
            more=len(resolved) > SHOWN,
            note=_("These are among the 1,000 that were resolved last."),
        )


def only_address(kinds: list[SearchHits]) -> str:
    """Return the address of the only match, or of the only list; "" for a choice, or for nothing."""
    if len(kinds) != 1:
        return ""
    [kind] = kinds
    if kind.similar:
        return ""
    return kind.shown[0].address if len(kind.shown) == 1 else kind.all


def _processes(filters: Filters, rows: list[ProcessInstance]) -> SearchHits:
    text, name = filters.q, filters.definition
    query = {"definition": name, "q": text} if name else {"q": text}
    every = f"{reverse('monitoring:instances')}?{urlencode(query)}"
    called = OutsideId.objects.filter(instance__in=rows, value=text) if rows else ()
    fields = {one.instance_id: f"{one.field} {one.value}" for one in called}
    shown = [process_hit(row, fields.get(row.pk)) for row in rows]
    kind = format_lazy("{} · {}", _("Processes"), name) if name else _("Processes")
    return SearchHits(kind, every, shown)


def _events(text: str, but_of: set[UUID]) -> SearchHits:
    """Return the events of this id, without those of found processes, whose pages have them."""
    rows = InboxEvent.objects.filter(pk__in=events_with_id(text)[:SHOWN])
    rows = rows.select_related("process").defer("process__data").order_by("-pk")
    shown = [
        SearchHit(
            _event_address(row),
            row.type,
            join_parts(row.source, row.event_id, row.process),
            row.verdict,
            row.received_at,
        )
        for row in rows
        if row.process_id not in but_of
    ]
    every = f"{reverse('monitoring:events')}?{urlencode({'q': text})}"
    return SearchHits(_("Events"), every, shown)


def _event_address(row: InboxEvent) -> str:
    """Return the address of an event with its outcome."""
    return f"{reverse('monitoring:events')}?{urlencode({'q': row.event_id})}#event-{row.pk}"


def _causes(groups: Iterable[AlikeFailures]) -> Iterator[SearchHit]:
    for group in groups:
        cause = group.newest.fingerprint or NO_CAUSE
        yield SearchHit(
            reverse("monitoring:failure-group", args=[cause]),
            translate(group.newest.said, group.definition),
            join_parts(group.number, group.definition and group.definition.name),
            "failed",
            group.newest.opened_at,
        )


def _resolved(row: Incident) -> SearchHit:
    process = row.instance
    return SearchHit(
        reverse("monitoring:failure-group", args=[row.fingerprint or NO_CAUSE]),
        translate(row.said, process.definition if process else None),
        process.name if process else "",
        "done",
        row.resolved_at,
    )


def _label(action: str) -> Any:
    return OPERATIONS[action].label if action in OPERATIONS else action
