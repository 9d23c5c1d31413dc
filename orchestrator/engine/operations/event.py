"""Actions on one event of the inbox: their base class, the change of a verdict, and the check of an addressee."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any
from uuid import UUID

from orchestrator import registry
from orchestrator.engine.change import incidents, offering
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import LockedOperation, Press, lock_row
from orchestrator.engine.operations.process import ENDED, check_revision
from orchestrator.engine.sql.batch import send
from orchestrator.engine.sql.tables import events, instances
from orchestrator.engine.storage import definitions, inbox
from orchestrator.exceptions import (
    OperationRefused,
    PermissionMissing,
    StaleRevision,
    UnknownDefinition,
)
from orchestrator.grants import definition_name_of
from orchestrator.models import InboxEvent, ProcessInstance, Verdict
from orchestrator.models.inbox_event import PROBLEMS
from orchestrator.queue import wake_queue_after_commit
from orchestrator.text import Text

NO_STEP_TAKES = Text("%(name)s takes no %(type)s in any step")


class EventOperation(LockedOperation):
    """An action on an event that no process has taken."""

    model = InboxEvent
    by_definition = True
    named_by = "event_id"

    @abstractmethod
    def effect(self, press: Press, event: InboxEvent, *given: Any) -> None:
        """Change the event, in the running transaction; the event and its process, if any, are locked.

        Raises:
            ProcessionError: the event does not allow it.
        """

    def concerned(self, *given: Any) -> list[UUID]:
        """Return further processes that the action locks, the oldest first."""
        return []

    def refusal(self, user: Any, event: InboxEvent, *processes: ProcessInstance) -> str:
        """Return why a user cannot request it now; "" if they can.

        Args:
            user: the user.
            event: the event.
            processes: further processes that the action concerns.
        """
        return self._forbidden_to(user, event, *processes) or self.why_not(event)

    def _forbidden_to(
        self, user: Any, event: InboxEvent, *processes: ProcessInstance
    ) -> str:
        """Why a user may not request it; "" if they may. An event of no definition needs those of the processes."""
        mine = self.definitions(user)
        if not mine:  # the answer is the same for each event, and no row is read
            return "" if mine is None else PermissionMissing().told
        names = {definition_name_of(one) for one in (event, *processes)}
        return self.forbidden(user, *sorted(names - {""}))

    def why_not(self, event: InboxEvent) -> str:
        """Return why it is not possible now; "" if it is."""
        if event.verdict in (*PROBLEMS, Verdict.PARKED):
            return ""
        return Text(
            "%(type)s was settled meanwhile: %(status)s", event.type, event.verdict
        )

    def _lock(
        self, key: int, request: ActionRequest, *given: Any
    ) -> tuple[Press, InboxEvent]:
        rows = InboxEvent.objects.filter(pk=key)
        process_id = rows.values_list("process_id", flat=True).first()
        ids = {*self.concerned(*given), *([process_id] if process_id else [])}
        locked = {pk: instances.lock(pk)[0] for pk in sorted(ids)}
        event, now = lock_row(events, key, Text("there is no event %(key)s", key))
        if event.process_id != process_id:
            raise StaleRevision("%(type)s has found its process just now", event.type)
        others = [one for one in locked.values() if one is not None]
        PermissionMissing.raise_for(self._forbidden_to(request.actor, event, *others))
        StaleRevision.raise_for(self.why_not(event))
        instance = locked[process_id] if process_id else None
        return Press(request, instance, now), event

    def _state(self, row: InboxEvent) -> dict[str, Any]:
        process = {"process": str(row.process_id)} if row.process_id else {}
        return {"verdict": str(row.verdict), **process}

    def _do(self, press: Press, row: InboxEvent, *given: Any) -> dict[str, Any]:
        self.effect(press, row, *given)
        settled, instance = InboxEvent.objects.get(pk=row.pk), press.instance
        if settled.process_id != row.process_id:
            found = ProcessInstance.objects.filter(pk__in=[settled.process_id])
            instance = found.first()
        after = self._state(settled)
        return {"event": settled, "instance": instance, "after": after}


def give_verdict(
    press: Press, event: InboxEvent, values: dict[str, Any], resolution: Text
) -> None:
    """Give a locked event another verdict; a process that was in trouble over the event gets its status anew."""
    marks = [
        events.update(values, {"id": event.pk, "verdict": event.verdict}),
        incidents.resolve(resolution, press.now, event_id=event.pk),
        *offering.unpark(event, press.instance, press.now),
        *offering.wake_followers(event, press.instance, press.now),
    ]
    if press.instance is not None and press.instance.status in TROUBLED:
        change = ProcessChange(press.instance, press.cause, press.now)
        change.mark(*marks)
        change.write()
    else:
        send(marks)


def offer_again(
    press: Press,
    event: InboxEvent,
    resolution: Text,
    process: ProcessInstance | None,
    **more: Any,
) -> None:
    """Offer a locked event as if it had just arrived; later ones that workers have claimed wait for it.

    Args:
        press: the request.
        event: the event.
        resolution: of its incidents.
        process: its locked process; None where it has none.
        more: further columns of the event.
    """
    values = {**inbox.offered_columns(press.now), **more}
    give_verdict(press, event, values, resolution)
    line = (event.process_id, event.target, event.correlation_key)
    if process is not None:
        line = (process.pk, process.name, process.correlation_key)
    send(inbox.release_line(*line, press.now))
    wake_queue_after_commit(event.queue)


def check_takes(process: ProcessInstance, kind: str, seen: int | None) -> None:
    """Check that a locked process may take an event of a type.

    Raises:
        StaleRevision: the page showed another revision of the process.
        OperationRefused: the process has ended, or its definition takes no event of that type.
    """
    check_revision(process, seen)
    if process.finished_at is not None:
        raise OperationRefused(ENDED)
    try:
        known = definitions.definition_of(process).events
    except UnknownDefinition as error:
        raise OperationRefused(error.told) from None
    if registry.current_name(kind) not in known:
        raise OperationRefused(NO_STEP_TAKES.filled(process.name, kind))
