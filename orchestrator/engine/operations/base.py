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
from typing import Any, ClassVar, Literal, NoReturn

from django.db.models import Model
from django.utils.functional import Promise

from orchestrator.engine.change.incidents import named_error
from orchestrator.engine.operations.audit import ActionRequest, carry_out_once
from orchestrator.engine.sql.table import M, Table
from orchestrator.engine.storage.application_code.errors import (
    as_failure,
    from_application,
)
from orchestrator.exceptions import (
    LeaseLost,
    OperationRefused,
    PermissionMissing,
    ProcessionError,
    StaleRevision,
)
from orchestrator.grants import definitions_of, grants_of
from orchestrator.models import Cause, CauseKind, OperatorAction, ProcessInstance
from orchestrator.text import Text

MAX_REASON = 2000

LONGEST_NAME = 100
"""The most characters of a name that a person gives to a saved view or a token."""

MOVED = Text(
    "A worker has just moved this process on: look again, and press again if it is still wanted"
)

Label = str | Promise
"""A text for people, translated when it is shown."""


@dataclass(frozen=True)
class Given:
    """A field of an action's form.

    Args:
        name: of the form's field.
        form: the kind of its value: a text, a number from 1 on, a number of days or nothing, a JSON value, a yes or
            no, or the name of a person, which may be empty.
        label: of the field in the dialog; without one its button gives it.
        initial: returns the first value of the field for a process.
        rows: lines of a field for JSON.
        of_workflows: whether the form has the field for workflows alone; for others a flag is off.
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
        request: the actor and the reason.
        instance: the locked process; None for an event that belongs to no process.
        now: the database's time.
    """

    request: ActionRequest
    instance: ProcessInstance | None
    now: datetime

    @property
    def process(self) -> ProcessInstance:
        """The locked process of an action on a process."""
        if self.instance is None:
            raise OperationRefused(Text("it belongs to no process"))
        return self.instance

    @property
    def cause(self) -> Cause:
        """The cause of the change: this action."""
        return Cause.of(CauseKind.OPERATOR, self.request.key)


@contextmanager
def refuse_errors(note: Callable[[Exception], None]) -> Iterator[None]:
    """Turn errors of the engine and of the application's code into refusals.

    Args:
        note: notes on an error of the application which secrets its text must not show.

    Raises:
        OperationRefused: the engine or the application's code has raised an error.
    """
    try:
        yield
    except OperationRefused:
        raise
    except BaseException as raised:
        error = as_failure(raised, "the application")
        if from_application(error):
            note(error)
            raise OperationRefused(named_error(error)) from None
        if isinstance(error, LeaseLost):
            raise StaleRevision(MOVED) from None
        if isinstance(error, ProcessionError):
            raise OperationRefused(error.told) from None
        raise


@dataclass(frozen=True)
class Tried:
    """A target of an action on many.

    Args:
        target: the key of the process or event.
        at: the time of the action, by the database's clock.
        revision: of the process before the action.
    """

    target: Any
    at: datetime
    revision: int = 0


class Operation(ABC):
    """An action of operators; its one instance carries the action out."""

    do_not_call_in_templates = True
    name: ClassVar[str]
    """In addresses, permissions and audit rows."""
    label: ClassVar[Label]
    """On its button, and in the history."""
    done: ClassVar[Label]
    """The message after the action."""
    may: ClassVar[Label]
    """The name of its permission."""
    text: ClassVar[Label] = ""
    """The text of its dialog."""
    icon: ClassVar[str] = ""
    tone: ClassVar[Literal["", "primary", "danger"]] = ""
    asks_reason: ClassVar[bool] = True
    reason_by_target: ClassVar[bool] = False
    """Whether its target tells whether a reason is needed; `effect` checks it then."""
    given: ClassVar[tuple[Given, ...]] = ()
    rank: ClassVar[int] = 50
    """The place of its button among the others, the lowest first."""
    on_own_page: ClassVar[bool] = False
    """Whether the action has a page of its own in place of a dialog."""
    on_many: ClassVar[bool] = False
    """Whether the admin offers it for many rows at once, with the defaults of its fields."""
    in_bulk: ClassVar[bool] = False
    """Whether the console offers it for all rows that match a filter."""
    by_rest: ClassVar[bool] = True
    """Whether programs can request it too, at the address of its form below `api/`."""
    by_definition: ClassVar[bool] = False
    """Whether a group can have its permission for the processes of one definition alone."""
    model: ClassVar[type[Model]]
    """The model of its targets."""
    permitted_as: ClassVar[str] = ""
    """The codename of its permission, if the codename is not made of the names of the action and its model."""

    @property
    def codename(self) -> str:
        """The codename of its permission, within the app."""
        return self.permitted_as or f"{self.name}_{self.model._meta.model_name}"

    @property
    def permission(self) -> str:
        return f"{self.model._meta.app_label}.{self.codename}"

    def outcomes(self, tried: Sequence[Tried]) -> dict[Any, str | None]:
        """Return the outcomes of an action on many.

        Args:
            tried: its targets.

        Returns:
            By target: "" for success, else the reason of the failure; None while the outcome is not known.
        """
        return {one.target: "" for one in tried}

    def definitions(self, user: Any) -> frozenset[str] | None:
        """Return the definitions for which a user has the permission; None for all."""
        return definitions_of(user, self.permission)

    def forbidden(self, user: Any, *definitions: str) -> str:
        """Return why a user may not request it; "" if they may. Every check of an operator's permission calls this.

        Args:
            user: the user.
            definitions: of the target processes. A target without a definition, which is "" or no argument at all,
                needs the permission for all definitions.
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
        """Return why a user may not request it for any definition; "" if they may for some."""
        mine = self.definitions(user)
        return "" if mine is None or mine else PermissionMissing().told

    def _check_request(self, request: ActionRequest) -> None:
        """Checks the reason of a request.

        Raises:
            OperationRefused: the reason is missing or too long.
        """
        missing = self.requires_reason and not request.reason.strip()
        if missing or len(request.reason) > MAX_REASON:
            self._refuse_reason()

    def _check_reason(self, request: ActionRequest) -> None:
        """Check that a request has a reason.

        Raises:
            OperationRefused: it has none.
        """
        if not request.reason.strip():
            self._refuse_reason()

    @property
    def requires_reason(self) -> bool:
        """Whether each request needs a reason."""
        return self.asks_reason and not self.reason_by_target

    def _refuse_reason(self) -> NoReturn:
        raise OperationRefused("say why, in at most %(number)s characters", MAX_REASON)

    def _carry_out_once(
        self,
        request: ActionRequest,
        carry_out: Callable[[], dict[str, Any]],
        about: Mapping[str, Any] = MappingProxyType({}),
        given: Sequence[Any] = (),
    ) -> OperatorAction:
        """Checks the reason and carries the action out; the arguments are those of `audit.carry_out_once`."""
        self._check_request(request)
        return carry_out_once(self.name, request, carry_out, about, given)

    def _check_permission(self, request: ActionRequest, *definitions: str) -> None:
        """Checks the permission for some definitions; without any, the permission for all.

        Raises:
            PermissionMissing: the operator lacks it.
        """
        PermissionMissing.raise_for(self.forbidden(request.actor, *definitions))

    def _check_for_some(self, request: ActionRequest) -> None:
        """Checks the permission for at least one definition, before any row is read or locked.

        Raises:
            PermissionMissing: the operator lacks it.
        """
        PermissionMissing.raise_for(self.forbidden_everywhere(request.actor))


class LockedOperation(Operation):
    """An action on one row. The action locks the row, and its effect and its audit row are one commit."""

    named_by: ClassVar[str]
    """The column of the audit row that names the target, or the key in its `after`."""

    def __call__(self, key: Any, *given: Any, request: ActionRequest) -> OperatorAction:
        """Carry the action out.

        Args:
            key: of the row.
            given: the values of its fields, in their order.
            request: the actor, the reason, and the revision that the page showed.

        Raises:
            OperationRefused: the row does not allow it, the page is stale, or the operator lacks the permission.
        """

        def carry_out() -> dict[str, Any]:
            self._check_for_some(request)
            press, row = self._lock(key, request, *given)
            before = self._state(row)
            return {"at": press.now, "before": before, **self._do(press, row, *given)}

        return self._carry_out_once(request, carry_out, {self.named_by: key}, given)

    @abstractmethod
    def _lock(self, key: Any, request: ActionRequest, *given: Any) -> Any:
        """Locks the row and checks it; returns the press, and the row.

        Raises:
            OperationRefused: there is no such row, the row does not allow the action, the page is stale, or the
                operator lacks the permission.
        """

    def _state(self, row: Any) -> dict[str, Any]:
        """The state of the row, for the audit row; empty by default."""
        return {}

    @abstractmethod
    def _do(self, press: Press, row: Any, *given: Any) -> dict[str, Any]:
        """Changes the locked row; returns the further columns of the audit row."""


def lock_row(table: Table[M], key: Any, missing: Text) -> tuple[M, datetime]:
    """Lock a row until the transaction ends; return it, and the database's time.

    Raises:
        OperationRefused: there is no such row; the message is `missing`.
    """
    row, now = table.lock(key)
    if row is None:
        raise OperationRefused(missing)
    return row, now


def clean_name(name: str, refusal: str) -> str:
    """Return a name without NUL characters and spaces around it.

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
