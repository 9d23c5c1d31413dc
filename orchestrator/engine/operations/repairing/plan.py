"""What a repair would come to: how the process would stand, what is wrong with an edit, and which effects run.

Planning asks the tables and the definition, and changes neither: what an application's predicate writes all the same is
undone. It is done once for the page, and once more when the repair is applied, with the process locked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.definition import Event
from orchestrator.definition.codec import digest, encode
from orchestrator.engine import inbox
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.incidents import named
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.event import UNTAKEN
from orchestrator.engine.operations.repairing.edits import Edit
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.exceptions import (
    InvalidMessage,
    OperationRefused,
    ProcessionError,
)
from orchestrator.models import ProcessInstance
from orchestrator.registry import DefinitionClass
from orchestrator.text import Text, text_from, with_error_type

SOURCE = "repair"
"""The source of an event that a repair adds."""


@dataclass(frozen=True)
class Mistake:
    """Why an edit cannot be made, and where in its value the mistake is."""

    why: str
    path: str = ""

    def __str__(self) -> str:
        return str(self.told)

    @property
    def told(self) -> str:
        """Both, as people are told of it."""
        return with_error_type(self.path, self.why) if self.path else self.why


@dataclass(frozen=True)
class Effect:
    """Something that is carried out because of a repair.

    Args:
        name: of the step, or of the command.
        what: which of them it is.
        again: whether it was carried out, or begun, before.
        safe: whether it may run again without doing its effect twice.
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
    """What a repair would come to."""

    edits: Sequence[Edit]
    mistakes: dict[int, Mistake] = field(default_factory=dict)
    """By the places of the edits."""
    edited: list[Edited] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    stands: list[str] = field(default_factory=list)
    """The steps in which the process would newly be."""
    leaves: list[str] = field(default_factory=list)
    """The steps that it would leave."""
    events: list[Event] = field(default_factory=list)
    """The events that are added."""
    again: bool = False
    """Whether what failed is tried again."""

    @property
    def unsafe(self) -> list[Effect]:
        """The effects that would run again although they are not made for it."""
        return [effect for effect in self.effects if effect.again and not effect.safe]

    def plan_each(self) -> None:
        """Plans the edits in their order; notes a mistake for each that is refused."""
        for place, edit in enumerate(self.edits):
            try:
                self.plan_edit(place, edit)
            except ProcessionError as mistake:
                self.refuse(place, mistake)

    @abstractmethod
    def plan_edit(self, place: int, edit: Edit) -> None:
        """Plans one edit.

        Raises:
            ProcessionError: it cannot be made.
        """

    @abstractmethod
    def carry_out(self, press: Press) -> dict[str, Any]:
        """Carries out what was planned, as one change; returns what the audit row tells of it."""

    def read_event(self, name: str, known: Container[str], edit: Edit) -> Event:
        """Adds the event of an edit to those of the plan.

        Args:
            name: of the definition.
            known: the types of event that its processes take.
            edit: the edit.

        Raises:
            OperationRefused: none of its steps takes an event of this type.
            InvalidMessage: it cannot be read.
        """
        if edit.target not in known:
            raise OperationRefused(UNTAKEN.filled(name, edit.target))
        event = inbox.read(edit.target, edit.value)
        self.events.append(event)
        return event

    def add_events(self, change: ProcessChange, press: Press) -> None:
        """Puts the events into the inbox in their order, as if they had arrived with the change."""
        address = inbox.Address(process_id=change.instance.pk)
        for number, event in enumerate(self.events):
            body, id = encode(event), f"{press.request.key}:{number}"
            rows = inbox.inbox_rows(
                event, body, id, SOURCE, address, digest(body), change.now
            )
            change.writes += inbox.stored(rows)
            change.rings |= {row.queue for row in rows}

    def refuse(self, place: int, why: object, path: str = "") -> None:
        """Notes what is wrong with an edit; the first mistake counts."""
        if isinstance(why, InvalidMessage):
            path = why.path
            why = why.told.removeprefix(f"{path}: ") if path else why
        self.mistakes.setdefault(place, Mistake(text_from(why), path))

    @property
    def refusal(self) -> str:
        """Why the repair cannot be applied; "" if it can."""
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
    """Why a process would not be found with other data; "" where its business key stays."""
    key, name = instance.correlation_key, definition.correlation
    known = key and name and hasattr(data, name)
    if known and definition.correlation_key(data) != key:
        return Text("the process is found by it: it stays %(key)s", key)
    return ""


@contextmanager
def asked_of_code(instance: ProcessInstance, *given: Any) -> Iterator[None]:
    """Turns errors of the application's code into refusals without secrets.

    Args:
        instance: the process.
        given: further values whose secrets are masked.

    Raises:
        OperationRefused: the code has raised an error.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, ProcessionError) or passes(error):
            raise
        secret_values.note_of_process(error, instance, *given)
        raise OperationRefused(named(error)) from None
