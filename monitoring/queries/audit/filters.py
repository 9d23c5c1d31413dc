"""What the audit is narrowed to; the address has it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.queries.audit.words import action_word
from monitoring.queries.days import between_days, midnight, wrong_days
from monitoring.queries.lists import Search, uuid_in
from monitoring.queries.processes import of_business_key
from monitoring.statuses import look
from orchestrator.models import (
    OperatorAction,
)

PROCESSES = 200
"""Processes of one business key whose actions are looked for."""

NOT_BY_INDEX = (Coalesce("at", "at").desc(), Coalesce("pk", "pk").desc())
"""The order of the list, in words that no index has."""

SPANS = {
    "today": gettext_lazy("Today"),
    "yesterday": gettext_lazy("Yesterday"),
    "week": gettext_lazy("Last 7 days"),
}


@dataclass(frozen=True)
class AuditFilters(Search):
    """What the audit is narrowed to.

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
        if self.event and not self.event.isdecimal():
            yield _("An event is looked for by its number.")
        yield from wrong_days(self.since, self.until)

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
        narrowed = self.who or self.action or self.q or self.event
        if self.result and (narrowed or self.result != "refused"):
            found &= Q(result=self.result)
        return found

    def _in_time(self) -> QuerySet[OperatorAction]:
        rows = OperatorAction.objects.filter(between_days("at", self.since, self.until))
        if self.when in SPANS:
            since, until = span_of(self.when)
            rows = rows.filter(at__gte=since, at__lt=until)
        return rows


def span_of(when: str) -> tuple[datetime, datetime]:
    """The beginning and the end of a span by its name, in the zone of the pages."""
    today = timezone.localdate()
    match when:
        case "today":
            return midnight(today), midnight(today, 1)
        case "yesterday":
            return midnight(today, -1), midnight(today)
    return timezone.now() - timedelta(days=7), midnight(today, 1)


def _by(*first: str) -> tuple[str, ...]:
    return (*first, "-at", "-pk")


def _processes(text: str) -> list[UUID]:
    """The processes that a process id or a business key names."""
    key = uuid_in(text)
    return [key] if key else of_business_key(text, PROCESSES)


def _as_in_the_audit(who: str) -> str:
    """The name under which a person stands in the audit."""
    if OperatorAction.objects.filter(actor_name=who).exists():
        return who
    users = get_user_model()._default_manager
    known = users.filter(**{get_user_model().USERNAME_FIELD: who}).first()
    return str(known)[:150] if known else who
