"""Mark all failures of one cause as handled or not handled, and assign them to a person.

These actions change no process. A mark hides the group until its time is over or the cause fails another process.
"""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy as _

from orchestrator.engine.change.announcements import announce_failures
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import Given, LockedOperation, Press
from orchestrator.engine.operations.desk.assign import find_person
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.batch import database_now
from orchestrator.exceptions import OperationRefused, StaleRevision
from orchestrator.grants import definition_name_of
from orchestrator.models import FailureMark, Incident
from orchestrator.text import Text, storable_text

MOST_HANDLED = 100
"""Handled groups at once: every page that counts failures looks for each of them."""


class FailuresOperation(LockedOperation):
    """An action on the group of all failures of one cause, which have the same definition, or all have none."""

    model = Incident
    by_definition = True
    named_by = "cause"

    def why_not(self, mark: FailureMark, newest: Incident) -> str:
        """Return why it is not possible now for a group with this mark and newest failure; "" if it is."""
        return ""

    @abstractmethod
    def effect(self, press: Press, mark: FailureMark, *given: Any) -> None:
        """Change a locked mark; the caller saves it.

        Raises:
            OperationRefused: the group does not allow it.
        """

    def refusal(self, user: Any, mark: FailureMark, newest: Incident) -> str:
        """Return why a user cannot request it now for a group with this mark and newest failure; "" if they can."""
        forbidden = self.forbidden(user, definition_name_of(newest))
        return forbidden or self.why_not(mark, newest)

    def _lock(
        self, key: str, request: ActionRequest, *given: Any
    ) -> tuple[Press, FailureMark]:
        now = database_now()
        mark, newest = _mark_of(key, now), newest_open_failure(key)
        if newest is not None:
            self._check_permission(request, definition_name_of(newest))
        if request.expected_revision not in (None, mark.revision):
            raise StaleRevision(
                Text(
                    "Somebody has marked or assigned these failures meanwhile: look again"
                )
            )
        if newest is None:
            raise OperationRefused(Text("None of this cause is open any more"))
        OperationRefused.raise_for(self.why_not(mark, newest))
        return Press(request, newest.instance, now), mark

    def _state(self, row: FailureMark) -> dict[str, Any]:
        return {
            "cause": row.fingerprint,
            "handled": row.handled_at is not None,
            "until": row.until.isoformat() if row.until else None,
            "owner": row.owner.get_username() if row.owner else "",
        }

    def _do(self, press: Press, row: FailureMark, *given: Any) -> dict[str, Any]:
        self.effect(press, row, *given)
        row.revision += 1
        row.changed_at = press.now
        row.save()
        announce_failures(press.instance.name if press.instance else "")
        return {"after": self._state(row)}


class MarkHandled(FailuresOperation):
    """Takes the failures of a cause out of the inbox: the operator's reason says how a person handles them."""

    name = "mark_handled"
    label = _("Mark as handled")
    done = _("Marked as handled.")
    may = _("Can mark failures as handled")
    text = _(
        "Leaves this group out of the list, and out of what needs a person, with your reason as its note. Nothing of "
        "its processes changes. It is back when one more fails of this cause, or when the days are over."
    )
    icon = "done"
    given = (
        Given("newest", "number"),
        Given("days", "days", _("For how many days; empty: until one more fails")),
    )

    def why_not(self, mark: FailureMark, newest: Incident) -> str:
        if not newest.is_about_event:
            return ""
        return Text("No process took these events: deliver or discard them")

    def effect(self, press: Press, mark: FailureMark, *given: Any) -> None:
        seen, days = given
        newest = newest_open_failure(mark.fingerprint)
        if newest is None or newest.pk != seen:
            raise StaleRevision(
                Text(
                    "Another one has failed of this cause since the page was loaded: look at it first"
                )
            )
        still = Incident.objects.open().filter(fingerprint=OuterRef("fingerprint"))
        others = FailureMark.objects.handled().exclude(pk=mark.pk)
        if others.filter(Exists(still)).count() >= MOST_HANDLED:
            raise OperationRefused(
                "%(number)s groups are marked as handled: retry or cancel what is behind some of them first",
                MOST_HANDLED,
            )
        mark.handled_at, mark.last = press.now, newest.pk
        mark.handled_by = press.request.actor_name
        mark.note = storable_text(press.request.reason)
        mark.until = press.now + timedelta(days=days) if days else None


class UnmarkHandled(FailuresOperation):
    """Takes the failures of a cause back into the inbox."""

    name = "unmark_handled"
    label = _("Not handled")
    done = _("Back in the list.")
    may = _("Can take failures back that were marked as handled")
    text = _("Takes this group back into the list, and among what needs a person.")
    icon = "failed"
    permitted_as = f"{MarkHandled.name}_incident"

    def why_not(self, mark: FailureMark, newest: Incident) -> str:
        handled = mark.handled_at is not None
        return "" if handled else Text("It is not marked as handled")

    def effect(self, press: Press, mark: FailureMark, *given: Any) -> None:
        mark.handled_at = mark.until = mark.last = None
        mark.handled_by = mark.note = ""


class AssignFailures(FailuresOperation):
    """Assigns all failures of a cause to a person, or to none."""

    name = "assign_failures"
    label = _("Assign")
    done = _("Assigned.")
    may = _("Can assign failures")
    text = _("Names the owner of all of this cause. Leave the name empty for no owner.")
    icon = "person"
    asks_reason = False
    given = (Given("person", "person", _("To whom")),)

    def effect(self, press: Press, mark: FailureMark, *given: Any) -> None:
        [person] = given
        owner: Any = find_person(person)
        mark.owner = owner


mark_handled = register(MarkHandled())
unmark_handled = register(UnmarkHandled())
assign_failures = register(AssignFailures())


def newest_open_failure(cause: str) -> Incident | None:
    """Return the newest open failure of a cause."""
    # A range of one value: for an equality PostgreSQL might search all open failures, the newest first.
    rows = Incident.objects.open().filter(fingerprint__range=(cause, cause))
    newest = rows.order_by("fingerprint", "-pk").select_related("instance")
    return newest.defer("detail", "instance__data").first()


def _mark_of(cause: str, now: datetime) -> FailureMark:
    """The mark of a cause, locked until the transaction ends; if there is none, a new one like that of before."""
    new = FailureMark.objects.of_causes([cause]).last() or FailureMark(changed_at=now)
    new.fingerprint = cause
    FailureMark.objects.bulk_create([new], ignore_conflicts=True)
    found: FailureMark = FailureMark.objects.select_for_update().get(pk=cause)
    return found
