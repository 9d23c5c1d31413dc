"""The base classes of operator actions; each action is a class in a module of its own.

The class declares the permission, the texts, the fields, the conditions and the effect. The console derives the rest
from it: the button, the dialog and its form, the address, the refusal, the audit row and the word in the history.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, Literal
from uuid import UUID

from django.db.models import Model
from django.utils.functional import Promise

from orchestrator.engine.change import secret_values
from orchestrator.engine.change.application_code import is_applications
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.incidents import named
from orchestrator.engine.operations.audit import ActionRequest, audited
from orchestrator.engine.operations.circumstances import ENDED, UNDOING, Circumstances
from orchestrator.engine.operations.stale import what_changed
from orchestrator.engine.storage.table import M, Table
from orchestrator.engine.storage.tables import events, instances
from orchestrator.exceptions import (
    LeaseLost,
    OperationRefused,
    PermissionMissing,
    ProcessionError,
    StaleRevision,
)
from orchestrator.grants import definition_name_of, definitions_of, grants_of
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
    Verdict,
)
from orchestrator.models.inbox_event import PROBLEMS
from orchestrator.text import Text

MAX_REASON = 2000

LONGEST_NAME = 100
"""Characters of a name that people give to something of theirs."""

Label = str | Promise
"""A text for people, translated when it is shown."""


@dataclass(frozen=True)
class Given:
    """A field of an action, beside its target.

    Args:
        name: of the form's field.
        form: what it is: text, a number from 1 on, a number of days or nothing, a JSON value, a yes or no, or the name
            of a person, may be empty.
        label: of the field in the dialog; without one its button gives it.
        initial: what stands in the field at first, for a process.
        rows: lines of a field for JSON.
        of_workflows: whether it is asked for of workflows alone; of others a flag is off.
    """

    name: str
    form: Literal["text", "number", "days", "json", "flag", "person"]
    label: Label = ""
    initial: Callable[[ProcessInstance], Any] = lambda instance: ""
    rows: int = 4
    of_workflows: bool = False


@dataclass(frozen=True)
class Press:
    """One request for an action, on a locked target.

    Args:
        request: who wants it, and why.
        instance: the locked process; None for an event that belongs to none.
        now: the database's time.
    """

    request: ActionRequest
    instance: ProcessInstance | None
    now: datetime

    @property
    def process(self) -> ProcessInstance:
        """The locked process of an action that is done to one."""
        if self.instance is None:
            raise OperationRefused(Text("it belongs to no process"))
        return self.instance

    @property
    def cause(self) -> Cause:
        """What moves the process."""
        return Cause.of(CauseKind.OPERATOR, self.request.key)


@contextmanager
def refusing(note: Callable[[Exception], None]) -> Iterator[None]:
    """Turns errors of the engine, and of the application's code, into refusals.

    Args:
        note: notes on an error of the application which secrets to mask in its text.

    Raises:
        OperationRefused: either has raised an error.
    """
    try:
        yield
    except OperationRefused:
        raise
    except Exception as error:
        if is_applications(error):
            note(error)
            raise OperationRefused(named(error)) from None
        if isinstance(error, LeaseLost):
            raise StaleRevision(
                Text(
                    "A worker has just moved this process on: look again, and press again if it is still wanted"
                )
            ) from None
        if isinstance(error, ProcessionError):
            raise OperationRefused(error.told) from None
        raise


@dataclass(frozen=True)
class Tried:
    """A target of an action on many.

    Args:
        target: the key of the process or event.
        at: when, by the database's time.
        revision: of the process as it was before.
    """

    target: Any
    at: datetime
    revision: int = 0


class Operation(ABC):
    """One thing that operators can do; its instance is what carries it out."""

    do_not_call_in_templates = True
    name: ClassVar[str]
    """In addresses, permissions and audit rows."""
    label: ClassVar[Label]
    """On its button, and in the history."""
    done: ClassVar[Label]
    """The message after it was done."""
    may: ClassVar[Label]
    """The name of its permission."""
    text: ClassVar[Label] = ""
    """The text of its dialog."""
    icon: ClassVar[str] = ""
    tone: ClassVar[Literal["", "primary", "danger"]] = ""
    asks_reason: ClassVar[bool] = True
    given: ClassVar[tuple[Given, ...]] = ()
    rank: ClassVar[int] = 50
    """Where its button stands among the others, the lowest first."""
    on_own_page: ClassVar[bool] = False
    """Whether it is asked for on a page of its own, and has no dialog."""
    on_many: ClassVar[bool] = False
    """Whether the admin offers it for many rows at once, with what it is given left at its defaults."""
    in_bulk: ClassVar[bool] = False
    """Whether the console offers it for all that match a filter."""
    by_rest: ClassVar[bool] = True
    """Whether programs can do it too, at the address of its form below `api/`."""
    by_definition: ClassVar[bool] = False
    """Whether a group can be given its permission for the processes of one definition alone."""
    model: ClassVar[type[Model]]
    """The model of its targets."""
    permitted_as: ClassVar[str] = ""
    """Its permission's codename, where that is not its own name with that of its model."""

    @property
    def codename(self) -> str:
        """Its permission's, within the app."""
        return self.permitted_as or f"{self.name}_{self.model._meta.model_name}"

    @property
    def permission(self) -> str:
        return f"{self.model._meta.app_label}.{self.codename}"

    def outcomes(self, tried: Sequence[Tried]) -> dict[Any, str | None]:
        """The outcomes of an action on many.

        Args:
            tried: its targets.

        Returns:
            By target: "" for success, else the reason of the failure; None while the outcome is not known.
        """
        return {one.target: "" for one in tried}

    def definitions(self, user: Any) -> frozenset[str] | None:
        """The definitions for which a user may do it; None for all."""
        return definitions_of(user, self.permission)

    def forbidden(self, user: Any, *definitions: str) -> str:
        """Why a user may not do it; "" if they may. Every check of an operator's permission is this one.

        Args:
            user: who would.
            definitions: of the processes that it would be done to; none, or "", for what belongs to no definition,
                which takes a permission for all definitions.
        """
        mine = self.definitions(user)
        if mine is None:
            return ""
        for name in definitions or [""]:
            if name and name not in mine and grants_of(user):
                return Text("Your account may not do this for %(name)s.", name)
            if not name or name not in mine:
                return PermissionMissing().told
        return ""

    def forbidden_everywhere(self, user: Any) -> str:
        """Why a user may not do it, whatever the definition; "" if they may for some."""
        mine = self.definitions(user)
        return "" if mine is None or mine else PermissionMissing().told

    def _check_request(self, request: ActionRequest) -> None:
        """Refuses a request without what every action needs.

        Raises:
            OperationRefused: the reason is missing or too long.
        """
        missing = self.asks_reason and not request.reason.strip()
        if missing or len(request.reason) > MAX_REASON:
            raise OperationRefused(
                "say why, in at most %(number)s characters", MAX_REASON
            )

    def _audited(
        self,
        request: ActionRequest,
        carry_out: Callable[[], dict[str, Any]],
        about: Mapping[str, Any] = MappingProxyType({}),
        given: Sequence[Any] = (),
    ) -> OperatorAction:
        """Carries it out once, with its audit row; the arguments are those of `audited`."""
        self._check_request(request)
        return audited(self.name, request, carry_out, about, given)

    def _check_permission(self, request: ActionRequest, *definitions: str) -> None:
        """Checks the permission for some definitions; without any, the permission for all.

        Raises:
            PermissionMissing: the operator may not.
        """
        PermissionMissing.raise_for(self.forbidden(request.actor, *definitions))

    def _check_somewhere(self, request: ActionRequest) -> None:
        """Checks that the operator may do it for some definition, before any row is read or locked.

        Raises:
            PermissionMissing: the operator may not.
        """
        PermissionMissing.raise_for(self.forbidden_everywhere(request.actor))


class LockedOperation(Operation):
    """An action on one row, which is locked while it is done, in one commit with its audit row."""

    named_by: ClassVar[str]
    """By which column the audit row names the target, or under which word of its `after`."""

    def __call__(self, key: Any, *given: Any, request: ActionRequest) -> OperatorAction:
        """Carries it out.

        Args:
            key: of the row.
            given: what it is told besides, in the order in which it declares it.
            request: who wants it, why, and what the page showed.

        Raises:
            OperationRefused: it cannot be done, the page is stale, or the operator may not.
        """

        def carry_out() -> dict[str, Any]:
            self._check_somewhere(request)
            press, row = self._locked(key, request, *given)
            before = self._told(row)
            return {"at": press.now, "before": before, **self._do(press, row, *given)}

        return self._audited(request, carry_out, {self.named_by: key}, given)

    @abstractmethod
    def _locked(self, key: Any, request: ActionRequest, *given: Any) -> Any:
        """Locks the row to which it can be done; returns the press, and the row.

        Raises:
            OperationRefused: there is none, the page is stale, it cannot be done, or the operator may not.
        """

    def _told(self, row: Any) -> dict[str, Any]:
        """The state of the row, for the audit row; empty by default."""
        return {}

    @abstractmethod
    def _do(self, press: Press, row: Any, *given: Any) -> dict[str, Any]:
        """Does it to the locked row; returns the further columns of the audit row."""


class ProcessOperation(LockedOperation):
    """An action on one process."""

    model = ProcessInstance
    by_definition = True
    named_by = "instance_id"
    on_step: ClassVar[bool] = False
    """Whether it is done to one of its open visits, whose key comes first among what it is given."""
    on_whole: ClassVar[bool] = False
    """Whether its button stands at the head of a process's page, not beside one of its steps or checkpoints."""
    of_workflows: ClassVar[bool] = False
    """Whether it is for workflows alone."""
    with_parents: ClassVar[bool] = False
    """Whether the process that this one is a part of, and so on, are locked too, the outermost first as always."""
    while_undoing: ClassVar[bool] = True
    """Whether it can be done to a process that is being undone."""
    else_restart: ClassVar[bool] = False
    """Whether the refusal for a workflow that has ended names the restart."""

    def why_not(self, process: Circumstances) -> str:
        """Why it cannot be done now; "" if it can."""
        if self.of_workflows and process.not_open:
            return process.not_open
        if process.ended:
            restart = self.else_restart and process.workflow
            return process.not_open if restart else ENDED
        if not self.while_undoing and process.undoing:
            return UNDOING
        return self.obstacle(process)

    def obstacle(self, process: Circumstances) -> str:
        """Why it cannot be done to a process that has not ended; "" if it can, and by default."""
        return ""

    @abstractmethod
    def effect(self, press: Press, *given: Any) -> dict[str, Any] | None:
        """Does it, in the running transaction; returns further values for the audit row.

        Raises:
            ProcessionError: it cannot be done.
        """

    def before(self, instance: ProcessInstance) -> dict[str, Any]:
        """Further values of a process before the action, for the audit row; none by default."""
        return {}

    def together(
        self, presses: Sequence[Press], *given: Any
    ) -> Sequence[ProcessChange]:
        """The changes that do it to several processes in one group commit; none by default.

        Each change is written with its audit row. A process without a change here gets the action by itself.

        Args:
            presses: each on a process as it was read, not locked, to which it can be done.
            given: what it is told besides.
        """
        return ()

    def concerns(self, process: Circumstances) -> bool:
        """Whether its button is shown; where it is and the action cannot be done, it says why."""
        return process.workflow or not self.of_workflows

    def refusal(self, user: Any, process: Circumstances) -> str:
        """Why a user cannot do it now; "" if they can."""
        return self.forbidden(user, process.instance.name) or self.why_not(process)

    def _locked(
        self, key: UUID, request: ActionRequest, *given: Any
    ) -> tuple[Press, ProcessInstance]:
        if self.with_parents:
            _lock_parents(key)
        instance, now = locked_process(key)
        self._check_permission(request, instance.name)
        if request.expected_revision not in (None, instance.revision):
            raise StaleRevision(what_changed(instance, request.expected_revision))
        OperationRefused.raise_for(self.why_not(Circumstances(instance)))
        return Press(request, instance, now), instance

    def _told(self, row: ProcessInstance) -> dict[str, Any]:
        return {**shown(row), **self.before(row)}

    def _do(self, press: Press, row: ProcessInstance, *given: Any) -> dict[str, Any]:
        def note(error: Exception) -> None:
            secret_values.note_of_process(error, row, *given)

        with refusing(note):
            told = self.effect(press, *given) or {}
        return {"instance": row, "after": {**shown(row), **told}}


class EventOperation(LockedOperation):
    """An action on an event that nothing has taken."""

    model = InboxEvent
    by_definition = True
    named_by = "event_id"

    @abstractmethod
    def effect(self, press: Press, event: InboxEvent, *given: Any) -> None:
        """Does it, in the running transaction; the event is locked, and its process if it has one.

        Raises:
            ProcessionError: it cannot be done.
        """

    def concerned(self, *given: Any) -> list[UUID]:
        """Further processes that the action locks, the oldest first."""
        return []

    def refusal(self, user: Any, event: InboxEvent, *processes: ProcessInstance) -> str:
        """Why a user cannot do it now; "" if they can.

        Args:
            user: who would.
            event: to which.
            processes: that it has to do with beside the event's own.
        """
        return self._forbidden_to(user, event, *processes) or self.why_not(event)

    def _forbidden_to(
        self, user: Any, event: InboxEvent, *processes: ProcessInstance
    ) -> str:
        """Why a user may not do it; "" if they may. An event of no definition needs those of the processes."""
        mine = self.definitions(user)
        if not mine:  # without a look at whose it is
            return "" if mine is None else PermissionMissing().told
        names = {definition_name_of(one) for one in (event, *processes)}
        return self.forbidden(user, *sorted(names - {""}))

    def why_not(self, event: InboxEvent) -> str:
        """Why it cannot be done now; "" if it can."""
        if event.verdict in (*PROBLEMS, Verdict.PARKED):
            return ""
        return Text(
            "%(type)s was settled meanwhile: %(status)s", event.type, event.verdict
        )

    def _locked(
        self, key: int, request: ActionRequest, *given: Any
    ) -> tuple[Press, InboxEvent]:
        rows = InboxEvent.objects.filter(pk=key)
        process_id = rows.values_list("process_id", flat=True).first()
        ids = {*self.concerned(*given), *([process_id] if process_id else [])}
        locked = {pk: instances.lock(pk)[0] for pk in sorted(ids)}
        event, now = locked_row(events, key, Text("there is no event %(key)s", key))
        if event.process_id != process_id:
            raise StaleRevision("%(type)s has found its process just now", event.type)
        others = [one for one in locked.values() if one is not None]
        PermissionMissing.raise_for(self._forbidden_to(request.actor, event, *others))
        StaleRevision.raise_for(self.why_not(event))
        instance = locked[process_id] if process_id else None
        return Press(request, instance, now), event

    def _told(self, row: InboxEvent) -> dict[str, Any]:
        process = {"process": str(row.process_id)} if row.process_id else {}
        return {"verdict": str(row.verdict), **process}

    def _do(self, press: Press, row: InboxEvent, *given: Any) -> dict[str, Any]:
        self.effect(press, row, *given)
        settled, instance = InboxEvent.objects.get(pk=row.pk), press.instance
        if settled.process_id != row.process_id:
            found = ProcessInstance.objects.filter(pk__in=[settled.process_id])
            instance = found.first()
        after = self._told(settled)
        return {"event": settled, "instance": instance, "after": after}


def _lock_parents(instance_id: UUID) -> None:
    """Locks the parents of a process, the outermost first; they never change."""
    found: list[UUID] = []
    part: UUID | None = instance_id
    while part is not None:
        process = ProcessInstance.objects.filter(pk=part)
        part = process.values_list("parent_id", flat=True).first()
        found += [part] if part is not None else []
    for parent in reversed(found):
        instances.lock(parent)


def locked_row(table: Table[M], key: Any, missing: Text) -> tuple[M, datetime]:
    """A row, locked until the action is done, and the database's time.

    Raises:
        OperationRefused: there is no such row, in the words of `missing`.
    """
    row, now = table.lock(key)
    if row is None:
        raise OperationRefused(missing)
    return row, now


def locked_process(key: UUID) -> tuple[ProcessInstance, datetime]:
    """The same of a process."""
    return locked_row(instances, key, Text("there is no process %(process)s", key))


def shown(instance: ProcessInstance) -> dict[str, Any]:
    """The state of a process, for audit rows."""
    return {
        "status": str(instance.status),
        "step": instance.step,
        "revision": instance.revision,
        "escalation_level": instance.escalation_level,
    }


def checked_name(name: str, refusal: str) -> str:
    """A name without NUL characters and spaces around it.

    Args:
        name: the name.
        refusal: the message for a name that is empty or longer than LONGEST_NAME.

    Raises:
        OperationRefused: the name is empty or too long.
    """
    name = name.replace("\0", "").strip()
    if not 0 < len(name) <= LONGEST_NAME:
        raise OperationRefused(refusal)
    return name
