"""The messages, and the process manager whose first transition issues five commands in one row."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.definition import Command, Event, ProcessManager, during, when


class BookClosed(Event):
    title: str
    trouble: str = ""


class BookReturned(Event):
    pass


class Register(Command):
    title: str


class Edit(Command):
    title: str


class Print(Command):
    title: str
    trouble: str


class Bind(Command):
    title: str


class Ship(Command):
    title: str


AFTER_COMMIT = ("Edit", "Print", "Bind", "Ship")
"""What is carried out after the commit, in the order written."""


class Publishing(ProcessManager):
    """A book is registered in the commit; then it is edited, printed, bound and shipped, in this order."""

    class Step(StrEnum):
        WRITTEN = "Written"
        OUT = "Out"
        BACK = "Back"

    @dataclass(frozen=True)
    class Data:
        title: str
        trouble: str

    correlation = "title"

    transitions = (
        during(
            Step.WRITTEN,
            when(BookClosed).issue(Register, Edit, Print, Bind, Ship).go_to(Step.OUT),
        ),
        during(Step.OUT, when(BookReturned).go_to(Step.BACK)),
    )
