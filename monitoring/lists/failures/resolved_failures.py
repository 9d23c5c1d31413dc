"""Resolved failures in groups of one cause, each with the action that resolved it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import (
    BooleanField,
    Case,
    Exists,
    ExpressionWrapper,
    OuterRef,
    Q,
    Value,
    When,
)

from monitoring.lists.failures.causes import open_of_cause
from monitoring.lists.failures.failures import PAGE, with_processes
from monitoring.queries.lists import KeyedPage, format_place, parse_place
from monitoring.queries.processes import definition_name
from orchestrator.models import Definition, Incident, OperatorAction
from orchestrator.models.incident import ABOUT_EVENTS

LOOKED_AT = 1_000
"""The number of resolved failures that one page looks at; the next page continues after them."""


@dataclass(frozen=True)
class ResolvedGroup:
    """Resolved failures of one cause without open ones.

    Args:
        last: the failure that was resolved last.
        number: the number of resolved failures among those of the page.
        by: the action that resolved the last one; None if the process continued by itself.
    """

    last: Incident
    number: int
    by: OperatorAction | None

    @property
    def definition(self) -> Definition | None:
        return self.last.instance.definition if self.last.instance else None

    @property
    def messages(self) -> list[str]:
        return [self.last.said]


def resolved_page(before: str = "", definition: str = "") -> KeyedPage[ResolvedGroup]:
    """Return a page of groups, the last resolved first.

    Args:
        before: the place at which the page before ended; "" for the first page.
        definition: a name to filter by, among the failures of one page; "" for all.
    """
    looked_at = _resolved_before(before, named=bool(definition))
    numbers = Counter(row[0] for row in looked_at if row[3] == definition)
    newest: dict[str, int] = {}
    end: tuple[datetime, int] | None = None
    for fingerprint, pk, at, name in looked_at:
        if name == definition:
            if fingerprint not in newest and len(newest) == PAGE:
                break
            newest.setdefault(fingerprint, pk)
        end = (at, pk)
    seen = end is None or looked_at[-1][1] == end[1]
    more = not seen or len(looked_at) == LOOKED_AT
    older = format_place(*end) if end and more else ""
    return KeyedPage(list(_groups(newest.values(), numbers)), older)


def resolved_with_text(
    text: str, most: int, definitions: Collection[str] | None = None
) -> list[Incident]:
    """Return the last resolved failure of each cause whose message or error class contains a text.

    Args:
        text: compared without case, among the failures that were resolved last.
        most: the maximum number of causes.
        definitions: the names to look at; None for all failures.
    """
    says = ~ABOUT_EVENTS & (Q(message__icontains=text) | Q(error__icontains=text))
    rows = Incident.objects.filter(resolved_at__isnull=False)
    rows = rows.order_by("-resolved_at", "-pk")
    if definitions is not None:
        rows, says = rows.annotate(of=definition_name()), says & Q(of__in=definitions)
    told = rows.annotate(says=ExpressionWrapper(says, BooleanField()))
    looked_at = told.values_list("fingerprint", "pk", "says")[:LOOKED_AT]
    last = {cause: pk for cause, pk, does in reversed(looked_at) if does}
    still = open_of_cause(OuterRef("fingerprint"))
    found = Incident.objects.filter(~Exists(still), pk__in=list(last.values()))
    ended = with_processes(found).defer("detail").order_by("-resolved_at", "-pk")
    return list(ended[:most])


def _resolved_before(before: str, *, named: bool) -> list[tuple[Any, ...]]:
    """Return cause, key, time and definition name of the incidents that were resolved last.

    The name is None if the incident is about an event that no process took, and else "" without names.
    """
    rows = Incident.objects.filter(resolved_at__isnull=False)
    if place := parse_place(before):
        at, pk = place
        rows = rows.filter(Q(resolved_at__lt=at) | Q(pk__lt=pk), resolved_at__lte=at)
    order = rows.order_by("-resolved_at", "-pk")
    known = definition_name() if named else Value("")
    of = Case(When(ABOUT_EVENTS, then=Value(None)), default=known)
    columns = ("fingerprint", "pk", "resolved_at", "of")
    return list(order.annotate(of=of).values_list(*columns)[:LOOKED_AT])


def _groups(keys: Iterable[int], numbers: Counter[str]) -> Iterable[ResolvedGroup]:
    """Yield the groups of these failures without open failures."""
    still = open_of_cause(OuterRef("fingerprint"))
    rows = Incident.objects.filter(~Exists(still), pk__in=list(keys))
    found = with_processes(rows).defer("detail").in_bulk()
    by = _resolved_by(found.values())
    for key in keys:
        if key in found:
            row = found[key]
            action = by.get(_resolution_key(row))
            yield ResolvedGroup(row, numbers[row.fingerprint], action)


def _resolved_by(rows: Iterable[Incident]) -> dict[Any, OperatorAction]:
    """Return the actions that resolved failures in the same commit, by target and time."""
    rows = list(rows)
    about = Q(instance__in={row.instance_id for row in rows if row.instance_id})
    about |= Q(event__in={row.event_id for row in rows if row.event_id})
    actions = OperatorAction.objects.filter(
        about, at__in={row.resolved_at for row in rows}, result="done"
    )
    found: dict[Any, OperatorAction] = {}
    for action in actions:
        found[("process", action.instance_id, action.at)] = action
        found[("event", action.event_id, action.at)] = action
    return found


def _resolution_key(row: Incident) -> Any:
    if row.instance_id is not None:
        return "process", row.instance_id, row.resolved_at
    return "event", row.event_id, row.resolved_at
