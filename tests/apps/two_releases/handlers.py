"""Who carries the commands out, and who reacts."""

from orchestrator import Answer, CommandContext, handles, reacts_to
from tests.apps.two_releases.messages import Book, Closed, Placed, Remind, Tell, Told


@handles(Book)
def book(command: Book) -> None:
    """Does nothing."""


@handles(Remind)
def remind(command: Remind) -> None:
    """Does nothing."""


@handles(Tell, after_commit=True)
def tell(command: Tell, context: CommandContext) -> Answer:
    if context.attempt == 1:
        raise ConnectionError("the customer cannot be reached")
    return Answer("HTTP 202", Told())


@reacts_to(Placed)
def count(event: Placed) -> None:
    """Does nothing."""


@reacts_to(Closed)
def archive(event: Closed, context: CommandContext) -> None:
    if context.attempt == 1:
        raise ConnectionError("the archive cannot be reached")
