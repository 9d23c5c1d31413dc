"""The audit: who did what, when, from where, why, and what it changed; newest first, narrowed by the address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.chips import Chip, address
from monitoring.queries.counts import Capped, grouped
from monitoring.queries.days import day_of, midnight
from monitoring.queries.distinct import different
from monitoring.queries.graphs import labels_of
from monitoring.queries.instance.entries import FieldChange, differences
from monitoring.spoken import spoken
from monitoring.statuses import look
from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import BulkOperation, OperatorAction, ProcessInstance

PAGE = 50
LOOKED_AT = 1_000
"""Rows that one page looks at for what no index finds; the page after it goes on from there."""

FEW = 100
"""Actions of one name and day that are counted."""

PEOPLE = 200
"""Names that are offered to choose from."""

PROCESSES = 200
"""Processes of one business key whose actions are looked for."""

NOT_BY_INDEX = (Coalesce("at", "at").desc(), Coalesce("pk", "pk").desc())
"""The order of the list, in words that no index has."""

SPANS = {
    "today": gettext_lazy("Today"),
    "yesterday": gettext_lazy("Yesterday"),
    "week": gettext_lazy("Last 7 days"),
}
OTHER_ACTIONS = {"prune": gettext_lazy("Prune")}
"""What stands in the audit and is no button: the label of each."""

FIELDS = {
    "status": gettext_lazy("status"),
    "step": gettext_lazy("step"),
    "escalation_level": gettext_lazy("escalation level"),
    "verdict": gettext_lazy("verdict"),
    "restarted_as": gettext_lazy("restarted as"),
    "paused_with_it": gettext_lazy("paused with it"),
    "owner": gettext_lazy("owner"),
    "steps_to_undo": gettext_lazy("steps to undo"),
    "commands_still_to_do": gettext_lazy("commands still to do"),
    "decided": gettext_lazy("decided"),
    "resumed_with_it": gettext_lazy("resumed with it"),
    "redone": gettext_lazy("redone"),
    "resumed_from": gettext_lazy("resumed from"),
    "superseded": gettext_lazy("superseded"),
    "skipped": gettext_lazy("skipped"),
    "processes": gettext_lazy("processes"),
}
"""What a row says before and after, in words."""

UNTOLD = ("way", "revision")
"""What of it stands elsewhere in the row, or says nothing."""

Place = tuple[datetime, int]
"""Where a row stands in the list: its time and its key."""


@dataclass(frozen=True)
class AuditFilters:
    """What the audit is narrowed to; each field is a parameter of the address.

    Args:
        who: a name as the audit has it, or a user's.
        action: an action's name.
        result: done or refused.
        q: a process id or a business key.
        event: the key of an event.
        when: a name of `SPANS`.
        since: the first day, as in 2026-11-23; the parameter is called from.
        until: the last day; the parameter is called to.
    """

    who: str = ""
    action: str = ""
    result: str = ""
    q: str = ""
    event: str = ""
    when: str = ""
    since: str = ""
    until: str = ""

    @classmethod
    def from_query(cls, query: QueryDict) -> AuditFilters:
        return cls(
            **{
                name: query.get(parameter, "").replace("\0", "").strip()[:200]
                for name, parameter in PARAMETERS.items()
            }
        )

    def parameters(self, **changed: str) -> dict[str, str]:
        """What is set, as parameters of the address, some of them changed."""
        given = {key: getattr(self, name) for name, key in PARAMETERS.items()} | changed
        return {name: value for name, value in given.items() if value}

    def chips(self) -> list[Chip]:
        """What is set, each with the way to remove it."""
        given = self.parameters()
        said = {
            "action": action_word(self.action),
            "result": look(self.result).word,
            "when": SPANS.get(self.when, self.when),
        }
        return [
            Chip(LABELS[name], said.get(name, value), address(given, **{name: ""}))
            for name, value in given.items()
        ]

    @cached_property
    def mistake(self) -> str:
        """What cannot be understood of it, with what would be; "" where nothing is wrong."""
        if self.when and self.when not in SPANS:
            return _("There is no such span of time: choose one of those offered.")
        if self.result and self.result not in OperatorAction.Result.values:
            return _("There is no such result: it is done or refused.")
        if self.event and not self.event.isdecimal():
            return _("An event is looked for by its number.")
        for text in filter(None, (self.since, self.until)):
            if day_of(text) is None:
                return _("%(text)s is no day: write it as in 2026-11-23.") % {
                    "text": text
                }
        since, until = day_of(self.since), day_of(self.until)
        if since and until and since > until:
            return _("The first day lies after the last: exchange them.")
        return ""

    def rows(self) -> QuerySet[OperatorAction]:
        """All that match, in no order."""
        rows, _order = self.found()
        return rows.filter(self.looked_for())

    def found(self) -> tuple[QuerySet[OperatorAction], tuple[Any, ...]]:
        """What an index finds, and the order in which it has that."""
        rows = self._in_time()
        if self.mistake:
            return rows.none(), NOT_BY_INDEX
        if self.event:
            return rows.filter(event=int(self.event[:18])), NOT_BY_INDEX
        if self.q:
            return rows.filter(instance__in=_processes(self.q)), NOT_BY_INDEX
        if self.who:
            name = _as_in_the_audit(self.who)
            return rows.filter(actor_name__range=(name, name)), _by("actor_name")
        if self.action:
            action = self.action
            return rows.filter(action__range=(action, action)), _by("action")
        if self.result == OperatorAction.Result.REFUSED:
            return rows.filter(result=self.result), _by()
        return rows, _by()

    def looked_for(self) -> Q:
        """What else must be so of them, which no index finds."""
        found = Q()
        if self.event and self.q:
            found &= Q(instance__in=_processes(self.q))
        if self.who and (self.q or self.event):
            found &= Q(actor_name=_as_in_the_audit(self.who))
        if self.action and (self.who or self.q or self.event):
            found &= Q(action=self.action)
        if self.result and (self._is_narrowed or self.result != "refused"):
            found &= Q(result=self.result)
        return found

    @property
    def _is_narrowed(self) -> bool:
        return bool(self.who or self.action or self.q or self.event)

    def _in_time(self) -> QuerySet[OperatorAction]:
        rows = OperatorAction.objects.all()
        if self.when in SPANS:
            since, until = span_of(self.when)
            rows = rows.filter(at__gte=since, at__lt=until)
        if day := day_of(self.since):
            rows = rows.filter(at__gte=midnight(day))
        if day := day_of(self.until):
            rows = rows.filter(at__lt=midnight(day, 1))
        return rows


PARAMETERS = {
    name: {"since": "from", "until": "to"}.get(name, name)
    for name in AuditFilters.__dataclass_fields__
}
LABELS = {
    "who": gettext_lazy("Person"),
    "action": gettext_lazy("Action"),
    "result": gettext_lazy("Result"),
    "q": gettext_lazy("Process"),
    "event": gettext_lazy("Event"),
    "when": gettext_lazy("When"),
    "from": gettext_lazy("From"),
    "to": gettext_lazy("To"),
}


@dataclass(frozen=True)
class AuditEntry:
    """One row of the audit, in words."""

    row: OperatorAction

    @property
    def action(self) -> str:
        return action_word(self.row.action)

    @property
    def process(self) -> ProcessInstance | None:
        return self.row.instance

    @property
    def way(self) -> str:
        """By which way it came; "" for the console."""
        return str((self.row.after or {}).get("way", ""))

    @property
    def detail(self) -> str:
        """What was answered."""
        definition = self.process.definition if self.process else None
        return spoken(self.row.detail, definition)

    @property
    def changes(self) -> list[FieldChange]:
        """What it changed, in words where there are; that its revision went up goes without saying."""
        before, after = (
            {name: value for name, value in told.items() if name not in UNTOLD}
            for told in (self.row.before or {}, self.row.after or {})
        )
        return [
            FieldChange(
                str(FIELDS.get(change.name, change.name)),
                self._said(change.name, change.before),
                self._said(change.name, change.after),
            )
            for change in differences(before, after)
        ]

    def _said(self, name: str, value: Any) -> Any:
        if name in ("status", "verdict") and isinstance(value, str):
            return str(look(value).word)
        if name == "step" and isinstance(value, str) and self.process:
            return labels_of(self.process.definition).get(value, value)
        return value


@dataclass(frozen=True)
class AuditPage:
    """Entries newest first, and where the next page starts; "" where there is none."""

    entries: list[AuditEntry]
    older: str = ""
    first: bool = True


@dataclass(frozen=True)
class Tally:
    """What was done in one span of time: each action with its number and where it is listed."""

    when: str
    word: Any
    actions: list[tuple[str, Capped, str]] = field(default_factory=list)


def audit_page(filters: AuditFilters, before: str = "") -> AuditPage:
    """The page that starts below a place, or the newest.

    It has fewer entries than there are when they lie far apart: the next page goes on from where it stopped looking.
    """
    place = _place(before)
    rows, edge = _newest(filters, PAGE + 1, place)
    more = len(rows) > PAGE
    end = (rows[PAGE - 1].at, rows[PAGE - 1].pk) if more else edge
    entries = [AuditEntry(row) for row in rows[:PAGE]]
    return AuditPage(entries, _written(end) if end else "", place is None)


def batches(filters: AuditFilters, size: int = 500) -> Iterator[list[AuditEntry]]:
    """All that match, newest first, in parts: each is read by itself, so that none is held open for a slow reader."""
    place: Place | None = None
    while True:
        rows, edge = _newest(filters, size, place)
        if rows:
            yield [AuditEntry(row) for row in rows]
        if len(rows) == size:
            place = (rows[-1].at, rows[-1].pk)
        elif edge is not None:
            place = edge
        else:
            return


def tallies() -> list[Tally]:
    """What was done today and yesterday."""
    names = different(OperatorAction, "action", PEOPLE)
    found = []
    for when in ("today", "yesterday"):
        since, until = span_of(when)
        span = OperatorAction.objects.filter(at__gte=since, at__lt=until)
        parts = [span.filter(action=name).order_by("-at", "-pk") for name in names]
        numbers = [
            (
                action_word(name),
                Capped(number, FEW),
                address({"action": name, "when": when}),
            )
            for name, number in grouped(parts, "action", cap=FEW)
        ]
        found.append(Tally(when, SPANS[when], sorted(numbers)))
    return found


def people() -> list[str]:
    """Whose names the audit has."""
    return different(OperatorAction, "actor_name", PEOPLE)


def action_names() -> list[tuple[str, str]]:
    """The actions that can be looked for, with what they are called."""
    known = [(name, action_word(name)) for name in (*OPERATIONS, *OTHER_ACTIONS)]
    return sorted(known, key=lambda one: one[1])


def action_word(name: str) -> str:
    """What an action is called; of one on bulk operations that it is such a one."""
    operation = OPERATIONS.get(name)
    if operation is None:
        return str(OTHER_ACTIONS.get(name, name))
    if operation.model is BulkOperation:
        return _("%(action)s (bulk operation)") % {"action": operation.label}
    return str(operation.label)


def span_of(when: str) -> tuple[datetime, datetime]:
    """The beginning and the end of a span by its name, in the zone of the pages."""
    today = timezone.localdate()
    match when:
        case "today":
            return midnight(today), midnight(today, 1)
        case "yesterday":
            return midnight(today, -1), midnight(today)
    return timezone.now() - timedelta(days=7), midnight(today, 1)


def _newest(
    filters: AuditFilters, number: int, before: Place | None
) -> tuple[list[OperatorAction], Place | None]:
    """The newest below a place, and the place at which the looking stopped; None when all were looked at."""
    rows, order = filters.found()
    if before is not None:
        at, pk = before
        rows = rows.filter(Q(at__lt=at) | Q(pk__lt=pk), at__lte=at)
    looked_for = filters.looked_for()
    if not looked_for:
        return list(_shown(rows).order_by(*order)[:number]), None
    keys = rows.order_by(*order)
    among = keys.values("pk")[:LOOKED_AT]
    found = OperatorAction.objects.filter(looked_for, pk__in=among)
    last = keys.values_list("at", "pk")[LOOKED_AT - 1 : LOOKED_AT]
    return list(_shown(found).order_by(*NOT_BY_INDEX)[:number]), next(iter(last), None)


def _shown(rows: QuerySet[OperatorAction]) -> QuerySet[OperatorAction]:
    found = rows.select_related("instance__definition", "event")
    return found.defer("instance__definition__graph", "instance__data", "event__body")


def _by(*first: str) -> tuple[str, ...]:
    return (*first, "-at", "-pk")


def _processes(text: str) -> list[UUID]:
    """The processes that a process id or a business key names."""
    try:
        return [UUID(text)]
    except ValueError:
        rows = ProcessInstance.objects.exclude(correlation_key="")
        named = rows.filter(correlation_key=text).order_by("-pk")
        return list(named.values_list("pk", flat=True)[:PROCESSES])


def _as_in_the_audit(who: str) -> str:
    """The name under which a person stands in the audit."""
    if OperatorAction.objects.filter(actor_name=who).exists():
        return who
    users = get_user_model()._default_manager
    known = users.filter(**{get_user_model().USERNAME_FIELD: who}).first()
    return str(known)[:150] if known else who


def _written(place: Place) -> str:
    at, pk = place
    return f"{at.timestamp():.6f}-{pk}"


def _place(text: str) -> Place | None:
    at, _dash, pk = text.rpartition("-")
    try:
        return datetime.fromtimestamp(
            float(at), tz=timezone.get_default_timezone()
        ), int(pk[:18])
    except (ValueError, OverflowError, OSError):
        return None
