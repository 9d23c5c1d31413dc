"""What a repair would come to: how the process would stand, what is wrong with an edit, and which effects run.

Planning asks the tables and the definition, and changes neither: what an application's predicate writes all the same is
undone. It is done once for the page, and once more when the repair is applied, with the process locked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.engine.change import secret_values
from orchestrator.engine.change.incidents import named
from orchestrator.engine.operations.repairing.edits import Edit
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.exceptions import (
    InvalidMessage,
    OperationRefused,
    ProcessionError,
)
from orchestrator.models import ProcessInstance
from orchestrator.text import Text, told_by, typed


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
        return typed(self.path, self.why) if self.path else self.why


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
class RepairPlan:
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

    @property
    def unsafe(self) -> list[Effect]:
        """The effects that would run again although they are not made for it."""
        return [effect for effect in self.effects if effect.again and not effect.safe]

    def plan_each(self, plan: Callable[[int, Edit], None]) -> None:
        """Plans the edits in their order, each by its place and itself; one that is refused is noted as a mistake."""
        for place, edit in enumerate(self.edits):
            try:
                plan(place, edit)
            except ProcessionError as mistake:
                self.refuse(place, mistake)

    def refuse(self, place: int, why: object, path: str = "") -> None:
        """Notes what is wrong with an edit; the first mistake counts."""
        if isinstance(why, InvalidMessage):
            path = why.path
            why = why.told.removeprefix(f"{path}: ") if path else why
        self.mistakes.setdefault(place, Mistake(told_by(why), path))

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


@contextmanager
def asked_of_code(instance: ProcessInstance, *given: Any) -> Iterator[None]:
    """Has what the application's code raises while a process is looked at be told without secrets.

    Args:
        instance: the process.
        given: what the code is asked of besides.

    Raises:
        OperationRefused: it has raised something.
    """
    try:
        yield
    except ProcessionError:
        raise
    except Exception as error:
        if passes(error):
            raise
        secret_values.note_of_process(error, instance, *given)
        raise OperationRefused(named(error)) from None
