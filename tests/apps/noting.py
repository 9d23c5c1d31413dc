"""A process manager that issues one command, for tests of what handlers do."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.definition import Command, Event, ProcessManager, during, when


class Opened(Event):
    number: int


class Note(Command):
    number: int


class Noting(ProcessManager):
    class Step(StrEnum):
        NEW = "New"
        OPEN = "Open"

    @dataclass(frozen=True)
    class Data:
        number: int

    transitions = (during(Step.NEW, when(Opened).issue(Note).go_to(Step.OPEN)),)
