"""The rows a process manager is made of. Engine, validator and diagram read the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum, StrEnum
from typing import Any, Literal

from orchestrator.definition.guards import Guard, guards_of, in_order
from orchestrator.definition.messages import Command, Event
from orchestrator.definition.words import (
    name_of,
    spoken_condition,
    spoken_delay,
)

DataPredicate = Callable[[Any, Any], bool]
"""A named condition: (data, event) -> bool. For deadlines the event is None."""


DataFunction = Callable[[Any, Any], Any]
"""A named pure function: (data, event) -> the value of a field. For deadlines the event is None."""

Rest = Literal["park", "ignore", "reject"]
"""The disposition of an event that does not move the process."""

Taken = Literal["move"] | Rest
"""The disposition of an event."""


@dataclass(frozen=True)
class Issue:
    """A command to issue; `renames` says which data or event field fills a field of another name.

    A command that is issued at once does not wait for the other commands of its row, nor they for it.
    """

    command: type[Command]
    renames: tuple[tuple[str, str], ...] = ()
    at_once: bool = False


@dataclass(frozen=True)
class TransitionRow:
    """One transition of a step: when this arrives and the guards hold, change data, issue commands, go on.

    `when`, `after`, `park`, `ignore` and `reject` make rows; the methods only add to them. One row may be shared by
    several steps.
    """

    trigger: type[Event] | timedelta
    disposition: Taken = "move"
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
        """Leaves these fields of the data as they are, though the event has fields of the same name."""
        return replace(self, keeps=(*self.keeps, *names))

    def set(self, **values: object) -> TransitionRow:
        """Also gives these fields of the data these values.

        In the place of a value may stand a named function of the data, as it was before the row, and the event.
        """
        return replace(self, sets=(*self.sets, *values.items()))

    def issue(
        self, *commands: type[Command], at_once: bool = False, **renames: str
    ) -> TransitionRow:
        """Also issues these commands, their fields filled by name from event and data.

        They are carried out in the order written, each after the one before; those issued `at_once` in any.
        """
        filled = tuple(renames.items())
        issued = (Issue(command, filled, at_once) for command in commands)
        return replace(self, issues=(*self.issues, *issued))

    def go_to(self, step: StrEnum) -> TransitionRow:
        """Then enters this step; without it the process stays where it is."""
        return replace(self, target=step, target_before=self.target)

    def escalate(self) -> TransitionRow:
        """Also raises the escalation level, for people to see."""
        return replace(self, escalates=True)

    def notify(self, recipient: str, *others: str) -> TransitionRow:
        """Also has these recipients told when the deadline passes, by the names that the settings give them.

        They are told whatever else they want to be told of.
        """
        return replace(self, notifies=(*self.notifies, recipient, *others))

    def assign(self, person: str) -> TransitionRow:
        """Also has this person see to the process when the deadline passes, by the name with which they sign in.

        Where nobody of that name is active by then, the process is escalated instead.
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
        """Whether it has a condition."""
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


class AnyStep(Enum):
    """Stands for every step except the first and the final ones."""

    ANY = "any step"


ANY = AnyStep.ANY

Disposes = Callable[..., TransitionRow]
"""One of `park`, `ignore` and `reject`."""


@dataclass(frozen=True)
class During:
    """The rows of some steps, and the disposition of an event that none of the rows takes."""

    steps: tuple[StrEnum, ...] | AnyStep
    rows: tuple[TransitionRow, ...]
    otherwise: Disposes | None = None


def during(
    steps: StrEnum | Iterable[StrEnum] | AnyStep,
    *rows: TransitionRow,
    otherwise: Disposes | None = None,
) -> During:
    """Groups the rows of a step, of several, or of ANY step in which a process waits.

    Rows for one event are tried in the order written, those of ANY step after the step's own.

    Args:
        steps: one step, several, or ANY.
        rows: what can happen in each of them.
        otherwise: `park`, `ignore` or `reject`: what becomes of an event that no row of these steps takes. Without it
            the class says so.
    """
    if isinstance(steps, AnyStep):
        return During(steps, rows, otherwise)
    one = isinstance(steps, str) or not isinstance(steps, Iterable)
    listed = (steps,) if one else tuple(in_order(steps))
    return During(listed, rows, otherwise)


def when(
    event: type[Event], *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """A row for an event. A guard names a field and the value or values it accepts, or `stored("field")`."""
    return TransitionRow(event, predicates=predicates, guards=guards_of(guards))


def after(
    delay: timedelta, *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """A row for a deadline, counted from entering the step."""
    return TransitionRow(delay, predicates=predicates, guards=guards_of(guards))


def park(
    event: type[Event], *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """The event may come early: it is kept, and offered again in a step that has something for it."""
    return TransitionRow(event, "park", predicates, guards_of(guards))


def ignore(
    event: type[Event], *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """The event is expected to come late in this step: it is logged and changes nothing."""
    return TransitionRow(event, "ignore", predicates, guards_of(guards))


def reject(
    event: type[Event], *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """The event is wrong in this step: an incident at once."""
    return TransitionRow(event, "reject", predicates, guards_of(guards))


RESTS: dict[Disposes, Rest] = {park: "park", ignore: "ignore", reject: "reject"}
"""The values of `otherwise`, and the disposition of an event that each of them means."""
