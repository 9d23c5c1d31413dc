"""The plan of a repair: the steps of the process after it, the mistakes of its edits, and the effects that would run.

Planning reads the tables and the definition, and changes neither: a rollback undoes the writes of an application's
predicate. The page plans a repair; its application plans it again, with the process locked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.definition import Event
from orchestrator.definition.codec import digest, encode
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.incidents import named_error
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.event import NO_STEP_TAKES
from orchestrator.engine.operations.repairing.edits import Edit
from orchestrator.engine.sql.connection import passes
from orchestrator.engine.storage import inbox
from orchestrator.exceptions import InvalidMessage, OperationRefused, ProcessionError
from orchestrator.models import ProcessInstance
from orchestrator.registry import DefinitionClass
from orchestrator.text import Text, text_from, with_error_type

SOURCE = "repair"
"""The source of an event that a repair adds."""


@dataclass(frozen=True)
class Mistake:
    """Why an edit is not possible, and the path of the mistake in its value."""

    why: str
    path: str = ""

    def __str__(self) -> str:
        return str(self.told)

    @property
    def told(self) -> str:
        """The reason with the path, for people."""
        return with_error_type(self.path, self.why) if self.path else self.why


@dataclass(frozen=True)
class Effect:
    """A step or command that workers carry out because of a repair.

    Args:
        name: of the step or command.
        what: a step, or a command.
        again: whether a worker has begun it before.
        safe: whether it may run again without having its effect twice.
    """

    name: str
    what: Literal["step", "command"]
    again: bool = False
    safe: bool = True


@dataclass(frozen=True)
class Edited:
    """A value before and after, for people to compare."""

    of: str
    before: Any
    after: Any


@dataclass
class RepairPlan(ABC):
    """The edits of a repair, with their mistakes and effects."""

    edits: Sequence[Edit]
    mistakes: dict[int, Mistake] = field(default_factory=dict)
    """The targets, by the places of the edits."""
    edited: list[Edited] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    stands: list[str] = field(default_factory=list)
    """The steps that the process would enter."""
    leaves: list[str] = field(default_factory=list)
    """The steps that the process would leave."""
    events: list[Event] = field(default_factory=list)
    """The events that the repair adds."""
    again: bool = False
    """Whether the repair tries failed work again."""

    @property
    def unsafe(self) -> list[Effect]:
        """The effects that would run again and are not idempotent."""
        return [effect for effect in self.effects if effect.again and not effect.safe]

    def plan_each(self) -> None:
        """Plan the edits in their order, and note their mistakes."""
        for place, edit in enumerate(self.edits):
            try:
                self.plan_edit(place, edit)
            except ProcessionError as mistake:
                self.refuse(place, mistake)

    @abstractmethod
    def plan_edit(self, place: int, edit: Edit) -> None:
        """Plan one edit.

        Raises:
            ProcessionError: the edit is not possible.
        """

    @abstractmethod
    def carry_out(self, press: Press) -> dict[str, Any]:
        """Apply the planned edits in one change; return further values for the audit row."""

    def read_event(self, name: str, known: Container[str], edit: Edit) -> Event:
        """Read the event of an edit, and add it to the plan.

        Args:
            name: of the definition.
            known: the types of event that its processes take.
            edit: the edit.

        Raises:
            OperationRefused: no step of the definition takes an event of this type.
            InvalidMessage: the event cannot be read.
        """
        if edit.target not in known:
            raise OperationRefused(NO_STEP_TAKES.filled(name, edit.target))
        event = inbox.parse_event(edit.target, edit.value)
        self.events.append(event)
        return event

    def add_events(self, change: ProcessChange, press: Press) -> None:
        """Store the events in the inbox in their order, as if they had arrived with the change."""
        address = inbox.Address(process_id=change.instance.pk)
        for number, event in enumerate(self.events):
            body, id = encode(event), f"{press.request.key}:{number}"
            rows = inbox.inbox_rows(
                event, body, id, SOURCE, address, digest(body), change.now
            )
            change.writes += inbox.event_inserts(rows)
            change.to_wake |= {row.queue for row in rows}

    def refuse(self, place: int, why: object, path: str = "") -> None:
        """Note the mistake of an edit; the first mistake counts."""
        if isinstance(why, InvalidMessage):
            path = why.path
            why = why.told.removeprefix(f"{path}: ") if path else why
        self.mistakes.setdefault(place, Mistake(text_from(why), path))

    @property
    def refusal(self) -> str:
        """Why the repair is not possible; "" if it is."""
        if not self.edits:
            return Text("nothing is staged")
        for place, mistake in sorted(self.mistakes.items()):
            edit = self.edits[place]
            what = f"{edit.kind} {edit.target}".strip()
            return Text("the edit %(what)s cannot be made: %(why)s", what, mistake)
        return ""


def lost_key(
    definition: DefinitionClass, instance: ProcessInstance, data: object
) -> str:
    """Return why a process needs its business key, if other data has another key; "" if the key stays."""
    key, name = instance.correlation_key, definition.correlation
    known = key and name and hasattr(data, name)
    if known and definition.correlation_key(data) != key:
        return Text("the process is found by it: it stays %(key)s", key)
    return ""


@contextmanager
def refuse_code_errors(instance: ProcessInstance, *given: Any) -> Iterator[None]:
    """Turn errors of the application's code into refusals without secrets.

    Args:
        instance: the process.
        given: further values with secrets.

    Raises:
        OperationRefused: the application's code has raised an error.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, ProcessionError) or passes(error):
            raise
        secret_values.attach_process(error, instance, *given)
        raise OperationRefused(named_error(error)) from None
