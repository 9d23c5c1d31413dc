"""The rows that take an event or a deadline. Process managers have all of them, workflows only `ignore`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal

from orchestrator.definition.declarations.guards import Guard, read_guards
from orchestrator.definition.labels import name_of, spoken_condition, spoken_delay
from orchestrator.definition.messages import Command, Event
from orchestrator.exceptions import InvalidDefinition

DataPredicate = Callable[[Any, Any], bool]
"""A named condition: (data, event) -> bool. For deadlines the event is None."""


DataFunction = Callable[[Any, Any], Any]
"""A named pure function: (data, event) -> the value of a field. For deadlines the event is None."""

NoMove = Literal["park", "ignore", "reject"]
"""The disposition of an event that does not move the process."""

RowDisposition = Literal["move"] | NoMove
"""The disposition of an event by a row."""

EventDecision = Literal["moved", "ignored", "rejected", "parked"]
"""The decision of a process about an event."""

OUTCOMES: dict[RowDisposition, EventDecision] = {
    "move": "moved",
    "ignore": "ignored",
    "reject": "rejected",
    "park": "parked",
}


@dataclass(frozen=True)
class Issue:
    """A command to issue; `renames` maps fields of the command to the data or event fields that fill them.

    A command with `at_once` does not wait for the other commands of its row, and they do not wait for it.
    """

    command: type[Command]
    renames: tuple[tuple[str, str], ...] = ()
    at_once: bool = False


@dataclass(frozen=True)
class TransitionRow:
    """One transition of a step: a trigger and guards, then changes of the data, commands and the next step.

    `when`, `after`, `park`, `ignore` and `reject` make rows; the methods return extended copies. Several steps may
    share a row.
    """

    trigger: type[Event] | timedelta
    disposition: RowDisposition = "move"
    predicates: tuple[DataPredicate, ...] = ()
    guards: tuple[Guard, ...] = ()
    keeps: tuple[str, ...] = ()
    sets: tuple[tuple[str, object], ...] = ()
    issues: tuple[Issue, ...] = ()
    target: StrEnum | None = None
    escalates: bool = False
    notifies: tuple[str, ...] = ()
    owner: str | None = None
    target_before: StrEnum | None = field(default=None, compare=False)
    edge: str = field(default="", compare=False)
    shared: bool = field(default=False, compare=False)

    def keep(self, *names: str) -> TransitionRow:
        """Leave these fields of the data unchanged, although the event has fields of the same names."""
        return replace(self, keeps=(*self.keeps, *names))

    def set(self, /, **values: object) -> TransitionRow:
        """Set fields of the data.

        Args:
            values: the new values, or named functions that compute them from the previous data and the event.
        """
        return replace(self, sets=(*self.sets, *values.items()))

    def issue(
        self, /, *commands: type[Command], at_once: bool = False, **renames: str
    ) -> TransitionRow:
        """Issue commands. Fields of the event and the data fill the command's fields of the same names.

        Workers carry out the commands of a row one after another, in the order written.

        Args:
            commands: their classes.
            at_once: whether these commands need not wait for the others.
            renames: the data or event field for each field of a command that has another name.

        Raises:
            InvalidDefinition: `at_once` is something else, as if a field of the command was meant.
        """
        if at_once not in (True, False):  # code may run without a type checker
            reason = f"at_once={at_once!r} must be True or False: it says when the commands go, and fills no field"
            raise InvalidDefinition("issue", "", reason)
        filled = tuple(renames.items())
        issued = (Issue(command, filled, at_once) for command in commands)
        return replace(self, issues=(*self.issues, *issued))

    def go_to(self, step: StrEnum) -> TransitionRow:
        """Enter this step. Without it the process stays in its step."""
        return replace(self, target=step, target_before=self.target)

    def escalate(self) -> TransitionRow:
        """Raise the escalation level, so that operators see the process."""
        return replace(self, escalates=True)

    def notify(self, recipient: str, *others: str) -> TransitionRow:
        """Send a notice to these recipients when the deadline passes, whatever topics they subscribe to.

        Args:
            recipient: the name of a recipient in the settings.
            others: further names.
        """
        return replace(self, notifies=(*self.notifies, recipient, *others))

    def assign(self, person: str) -> TransitionRow:
        """Make a person the owner of the process when the deadline passes.

        If there is no active user of that name then, the process is escalated instead.

        Args:
            person: the user name.
        """
        return replace(self, owner=person)

    @property
    def event(self) -> type[Event] | None:
        return None if isinstance(self.trigger, timedelta) else self.trigger

    @property
    def computes(self) -> dict[str, DataFunction]:
        """The fields of the data that functions compute."""
        return {name: one for name, one in dict(self.sets).items() if callable(one)}

    @property
    def conditional(self) -> bool:
        """Whether the row has a guard or a predicate."""
        return bool(self.guards or self.predicates)

    @property
    def at_once(self) -> frozenset[int]:
        """The positions of the commands that are issued at once, from 0."""
        return frozenset(
            place for place, issue in enumerate(self.issues) if issue.at_once
        )

    @property
    def guard_text(self) -> str:
        """The guard as it stands in the brackets of an edge label."""
        named = map(spoken_condition, self.predicates)
        return " and ".join([*named, *map(str, self.guards)])

    @property
    def trigger_text(self) -> str:
        if isinstance(self.trigger, timedelta):
            return f"after {spoken_delay(self.trigger)}"
        return name_of(self.trigger)

    @property
    def set_texts(self) -> tuple[str, ...]:
        """The labels of computed fields."""
        computed = self.computes.items()
        return tuple(f"{name} = {spoken_condition(one)}" for name, one in computed)

    def __str__(self) -> str:
        guard = f" [{self.guard_text}]" if self.conditional else ""
        commands = [name_of(issue.command) for issue in self.issues]
        actions = ", ".join([*self.set_texts, *commands])
        target = f" -> {self.target}" if self.target is not None else ""
        return f"{self.trigger_text}{guard}{' / ' + actions if actions else ''}{target}"


Disposer = Callable[..., TransitionRow]
"""One of `park`, `ignore` and `reject`."""


def park(
    event: type[Event], /, *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """Keep an early event for a later step. It is offered again when the process enters a step that handles it."""
    return TransitionRow(event, "park", predicates, read_guards(guards))


def ignore(
    event: type[Event], /, *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """Log a late event. It changes nothing."""
    return TransitionRow(event, "ignore", predicates, read_guards(guards))


def reject(
    event: type[Event], /, *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """Refuse a wrong event, and open an incident."""
    return TransitionRow(event, "reject", predicates, read_guards(guards))


DEFAULTS: dict[Disposer, NoMove] = {park: "park", ignore: "ignore", reject: "reject"}
"""The values of `otherwise`, with their dispositions."""
