"""What happens to orders, and what is to be done with them."""

from orchestrator.definition import Command, Event


class Placed(Event):
    order: str
    parts: int = 3


class Paid(Event):
    order: str
    amount: int


class Told(Event):
    """The customer was told."""


class Arrived(Event):
    order: str


class Closed(Event):
    order: str


class Book(Command):
    """Is a part of the commit."""

    order: str


class Tell(Command):
    """Is carried out after it, and fails the first time."""

    order: str


class Remind(Command):
    order: str
