"""Declarations that would be taken in silence and mean nothing: refused where they are written, with what to write."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import pytest

from orchestrator import CommandContext, handles, reacts_to, registry
from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    Workflow,
    after,
    ask,
    during,
    then,
    wait,
    when,
)
from orchestrator.exceptions import InvalidDefinition


class Opened(Event):
    case: str


class Closed(Event):
    case: str
    by: str


class Write(Command):
    case: str


class Offered(Event):
    event: str
    name: str
    gives: str
    deadline: str


class Other(Command):
    case: str


class Step(StrEnum):
    NEW = "New"
    OPEN = "Open"
    CLOSED = "Closed"


@dataclass(frozen=True)
class Data:
    case: str
    who: str = ""


OPENS = during(Step.NEW, when(Opened).go_to(Step.OPEN))
CLOSES = during(Step.OPEN, when(Closed).go_to(Step.CLOSED))


def manager(*rows: Any, **attributes: Any) -> None:
    """Declare a process manager with these attributes beside its own."""
    whole = {"Step": Step, "Data": Data, "transitions": rows or (OPENS, CLOSES)}
    type("Case", (ProcessManager,), {**whole, **attributes})


def first() -> int:
    return 1


def second(first: int) -> int:
    return first


def workflow(**attributes: Any) -> None:
    """Declare a workflow with these attributes beside its own."""
    type("Way", (Workflow,), {"flow": (then(first, second),), **attributes})


def nothing(command: Write) -> None:
    """Does nothing."""


def no_parameter() -> None: ...


def three(command: Write, context: CommandContext, more: int) -> None: ...


def only_named(command: Write, *, more: int) -> None: ...


def of_another(command: Other) -> None: ...


def the_wrong_way_round(context: CommandContext, command: Write) -> None: ...


def with_retries(command: Write, retries: int = 3) -> None: ...


MINUTE = timedelta(minutes=1)

# Without types: a type checker would refuse the calls too.
HANDLES: Any = handles
REACTS_TO: Any = reacts_to
ASK: Any = ask
ANY_VALUE: Any = "A-1"

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "handles without the command": (
        lambda: HANDLES(nothing),
        "write @handles(TheCommand) above",
    ),
    "reacts_to without the event": (
        lambda: REACTS_TO(nothing),
        "write @reacts_to(TheEvent) abo",
    ),
    "handles of an event": (
        lambda: HANDLES(Opened),
        "takes a command: write @reacts_to(Opened)",
    ),
    "reacts_to of a command": (
        lambda: REACTS_TO(Write),
        "takes an event: write @handles(Write)",
    ),
    "handles of a name": (
        lambda: HANDLES("Write"),
        "takes the class of a command, not 'Write'",
    ),
    "handles of one command": (
        lambda: HANDLES(Write("1")),
        "takes the class of a command, no",
    ),
    "handles of every command": (
        lambda: HANDLES(Command),
        "takes the class of a command",
    ),
    "reacts_to of every event": (
        lambda: REACTS_TO(Event),
        "takes the class of an event",
    ),
    "no parameter": (
        lambda: HANDLES(Write)(no_parameter),
        "it must take the message, Write",
    ),
    "three parameters": (
        lambda: HANDLES(Write)(three),
        "it must take the message, Write",
    ),
    "a parameter by name": (
        lambda: HANDLES(Write)(only_named),
        "it must take the message",
    ),
    "another command": (
        lambda: HANDLES(Write)(of_another),
        "command is a Other, and would get",
    ),
    "the wrong way round": (
        lambda: HANDLES(Write)(the_wrong_way_round),
        "context is a CommandContext, and would get a Write",
    ),
    "a second parameter of its own": (
        lambda: HANDLES(Write)(with_retries),
        "retries is a int, and would get a CommandContext",
    ),
    "a class": (lambda: HANDLES(Write)(Data), "a handler is a function"),
    "attempts as text": (
        lambda: later(attempts="3"),
        "attempts='3' must be a whole number",
    ),
    "attempts as a truth": (
        lambda: later(attempts=True),
        "attempts=True must be a whole",
    ),
    "half an attempt": (
        lambda: later(attempts=2.5),
        "attempts=2.5 must be a whole number",
    ),
    "timeout as a timedelta": (
        lambda: later(timeout=MINUTE),
        "must be seconds, more than 0",
    ),
    "queue as a number": (
        lambda: later(queue=3),
        "queue=3 must be the name of a queue",
    ),
    "after_commit as text": (lambda: later(after_commit="no"), "must be True or False"),
    "attempts in the commit": (
        lambda: later(after_commit=False, attempts=3),
        "attempts=3 means nothing inside the commit",
    ),
    "timeout in the commit": (
        lambda: later(after_commit=False, timeout=3),
        "means nothing in",
    ),
    "queue in the commit": (
        lambda: later(after_commit=False, queue="q"),
        "means nothing insid",
    ),
    "a manager's deadline": (
        lambda: manager(deadline=MINUTE),
        "it has deadline, which means noth",
    ),
    "a manager's retries": (
        lambda: manager(retries=3),
        "write step(function, retries=...)",
    ),
    "a manager's flow": (
        lambda: manager(flow=()),
        "the rows of a process manager are its",
    ),
    "a manager's states": (lambda: manager(states=()), "declare class Step(StrEnum)"),
    "a manager's first step": (
        lambda: manager(initial=1),
        "the first member of Step is the fir",
    ),
    "a near miss": (
        lambda: manager(corelation="case"),
        "means nothing: write correlation",
    ),
    "a workflow's transitions": (
        lambda: workflow(transitions=()),
        "the rows of a workflow are",
    ),
    "a workflow's deadline": (
        lambda: workflow(deadline=MINUTE),
        "wait(..., deadline=...)",
    ),
    "a workflow's timeout": (
        lambda: workflow(timeout=3),
        "write step(function, timeout=...)",
    ),
    "a workflow's steps": (lambda: workflow(steps=()), "its flow names the steps"),
    "an event's field as a text": (
        lambda: manager(
            OPENS, during(Step.OPEN, when(Closed).set(who="by").go_to(Step.CLOSED))
        ),
        "sets 'who' to the text 'by', and Closed has a field of that name: write a function",
    ),
    "a deadline of which nothing follows": (
        lambda: manager(
            OPENS, during(Step.OPEN, when(Closed).go_to(Step.CLOSED), after(MINUTE))
        ),
        "it does nothing: add .go_to",
    ),
    "a value without an annotation": (
        lambda: type("Sent", (Event,), {"copies": 1}),
        "copies = 1 is no field without an annotation: write copies: int = 1",
    ),
    "a field named like the argument of the step's name": (
        lambda: wait(Offered, name="A-1"),
        "name= may mean the step or the field of Offered: write the step's name second",
    ),
    "a field named like the argument of the result": (
        lambda: wait(Offered, gives="A-1"),
        "gives= may mean the step or the field of Offered: the result can have",
    ),
    "a field named like the argument of the deadline": (
        lambda: workflow(flow=(then(first, wait(Offered, deadline=ANY_VALUE)),)),
        "the deadline 'A-1' must be a timedelta",
    ),
    "a field of a command named like the argument of its time": (
        lambda: when(Opened).issue(Write, at_once=ANY_VALUE),
        "at_once='A-1' must be True or False",
    ),
    "choices before the name": (
        lambda: ASK(["yes", "no"], "sure"),
        "it takes a name, and then",
    ),
}


def later(**policy: Any) -> None:
    """Register a handler with a policy, in vain."""
    HANDLES(Write, **{"after_commit": True, **policy})(nothing)


def test_each_is_refused_and_says_what_to_write() -> None:
    wrong = {}
    for name, (declare, why) in REFUSED.items():
        try:
            declare()
        except InvalidDefinition as error:
            if why not in str(error):
                wrong[name] = str(error)
        else:
            wrong[name] = "taken in silence"
    assert wrong == {}
    assert "Write" not in {
        k for k, handlers in registry.command_handlers.items() if handlers
    }


def test_what_is_meant_is_taken() -> None:
    manager(correlation="case", helper=staticmethod(first))
    assert (
        str(when(Offered, event="A-1", name="B"))
        == "Offered [event = A-1 and name = B]"
    )
    assert str(wait(Offered, "offer", event="A-1").guards[0]) == "event = A-1"
    assert wait(Closed, name="closed").name == wait(Offered, "closed").name == "closed"
    workflow(retries=staticmethod(first))

    class Sent(Event):
        copies: int = 1

    assert Sent() == Sent(1)
    with pytest.raises(InvalidDefinition):
        HANDLES(Sent)
