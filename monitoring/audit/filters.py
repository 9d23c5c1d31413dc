"""The filters of the audit, as parameters of an address."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.audit.words import action_word
from monitoring.base.days import between_days, day_mistakes, midnight
from monitoring.base.requests import parse_uuid
from monitoring.base.statuses import look
from monitoring.queries.lists import Search, parse_number
from monitoring.queries.processes import processes_with_key
from orchestrator.models import OperatorAction

PROCESSES = 200
"""The maximum number of processes with one business key whose actions a search finds."""

NOT_BY_INDEX = (Coalesce("at", "at").desc(), Coalesce("pk", "pk").desc())
"""The order of the list as expressions, which no index has."""

SPANS = {
    "today": gettext_lazy("Today"),
    "yesterday": gettext_lazy("Yesterday"),
    "week": gettext_lazy("Last 7 days"),
}


@dataclass(frozen=True)
class AuditFilters(Search):
    """The filters of the audit.

    Args:
        who: a name of the audit, or a user name.
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

    def words(self) -> dict[str, Any]:
        return {
            "action": action_word(self.action),
            "result": look(self.result).word,
            "when": SPANS.get(self.when, self.when),
        }

    def mistakes(self) -> Iterator[str]:
        if self.when and self.when not in SPANS:
            yield _("There is no such span of time: choose one of those offered.")
        if self.result and self.result not in OperatorAction.Result.values:
            yield _("There is no such result: it is done or refused.")
        if self.event and parse_number(self.event) is None:
            yield _("An event is looked for by its number.")
        yield from day_mistakes(self.since, self.until)

    def found(self) -> tuple[QuerySet[OperatorAction], tuple[Any, ...]]:
        """Return the rows that an index finds, and the order of that index."""
        rows = self._in_time()
        if self.mistake:
            return rows.none(), NOT_BY_INDEX
        if not self._conditions:
            return rows, _order_by()
        condition, order = self._conditions[0]
        return rows.filter(condition), order

    def unindexed(self) -> Q:
        """Return the remaining conditions."""
        done = OperatorAction.Result.DONE
        found = Q(result=done) if self.result == done else Q()
        for condition, _order in self._conditions[1:]:
            found &= condition
        return found

    @cached_property
    def _conditions(self) -> list[tuple[Q, tuple[Any, ...]]]:
        """The conditions with an index, each with the order of the index, the most selective first."""
        found: list[tuple[Q, tuple[Any, ...]]] = []
        if self.event:
            found.append((Q(event=parse_number(self.event)), NOT_BY_INDEX))
        if self.q:
            found.append((Q(instance__in=_processes(self.q)), NOT_BY_INDEX))
        if self.who:
            name = _audit_name(self.who)
            found.append((Q(actor_name__range=(name, name)), _order_by("actor_name")))
        if self.action:
            action = Q(action__range=(self.action, self.action))
            found.append((action, _order_by("action")))
        if self.result == OperatorAction.Result.REFUSED:
            found.append((Q(result=self.result), _order_by()))
        return found

    def _in_time(self) -> QuerySet[OperatorAction]:
        rows = OperatorAction.objects.filter(between_days("at", self.since, self.until))
        if self.when in SPANS:
            since, until = named_span(self.when)
            rows = rows.filter(at__gte=since, at__lt=until)
        return rows


def named_span(when: str) -> tuple[datetime, datetime]:
    """Return the beginning and the end of a named span, in the zone of the pages."""
    today = timezone.localdate()
    match when:
        case "today":
            return midnight(today), midnight(today, 1)
        case "yesterday":
            return midnight(today, -1), midnight(today)
    return timezone.now() - timedelta(days=7), midnight(today, 1)


def _order_by(*first: str) -> tuple[str, ...]:
    return (*first, "-at", "-pk")


def _processes(text: str) -> list[UUID]:
    """Return the processes of a process id or a business key."""
    key = parse_uuid(text)
    return [key] if key else processes_with_key(text, PROCESSES)


def _audit_name(who: str) -> str:
    """Return the name of a person in the audit."""
    if OperatorAction.objects.filter(actor_name=who).exists():
        return who
    users = get_user_model()._default_manager
    known = users.filter(**{get_user_model().USERNAME_FIELD: who}).first()
    return str(known)[:150] if known else who
