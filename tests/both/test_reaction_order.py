"""What one simple event handler returns for the events of one process or key is received in their order."""

from collections.abc import Callable
from itertools import count

import pytest

from orchestrator import (
    Envelope,
    Permanent,
    reacts_to,
    registry,
    send_event,
    send_events,
)
from orchestrator.definition import Event
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.tables import commands
from orchestrator.models import InboxEvent, IssuedCommand
from orchestrator.testing import pass_time, run

pytestmark = pytest.mark.django_db

ids = (str(number) for number in count())


class Seen(Event):
    thing: str
    number: int


class Noted(Event):
    thing: str
    number: int


@pytest.fixture(autouse=True)
def errors(monkeypatch: pytest.MonkeyPatch) -> dict[int, Exception]:
    """The errors that the handler raises for some numbers, each once."""
    raised: dict[int, Exception] = {}

    def note(event: Seen) -> Noted:
        if event.number in raised:
            raise raised.pop(event.number)
        return Noted(event.thing, event.number)

    monkeypatch.setitem(registry.reactions, "Seen", [])
    reacts_to(Seen, attempts=3)(note)
    return raised


def send(numbers: range, thing: str = "a") -> None:
    for number in numbers:
        send_event(Seen(thing, number), id=next(ids), correlation_key=thing)


def send_together(numbers: range, thing: str = "a") -> None:
    send_events(
        Envelope(Seen(thing, number), id=next(ids), correlation_key=thing)
        for number in numbers
    )


def noted(thing: str = "a") -> list[int]:
    rows = InboxEvent.objects.filter(type="Noted", body__thing=thing).order_by("pk")
    return [row.body["number"] for row in rows]


@pytest.mark.parametrize("sender", [send, send_together])
def test_what_it_returns_is_received_in_the_order_of_their_events(
    sender: Callable[..., None],
) -> None:
    sender(range(12))
    sender(range(12), "b")
    run()

    assert (noted(), noted("b")) == ([*range(12)], [*range(12)])


def test_one_between_two_attempts_holds_back_those_of_its_line_alone(
    errors: dict[int, Exception],
) -> None:
    errors[2] = ConnectionError("no line")
    send(range(5))
    send(range(3), "b")
    drain()
    assert (noted(), noted("b")) == ([0, 1], [*range(3)])
    pass_time(minutes=1)

    assert (noted(), noted("b")) == ([*range(5)], [*range(3)])


def test_one_that_failed_for_good_holds_back_nothing(
    errors: dict[int, Exception],
) -> None:
    errors[2] = Permanent("no such thing")
    send(range(5))
    run()

    assert noted() == [0, 1, 3, 4]


def test_one_that_another_worker_holds_holds_back_those_of_its_line_alone() -> None:
    send(range(3))
    [held] = commands.claim("default", "another worker", 1, 10)
    send(range(3), "b")
    drain()
    assert (noted(), noted("b")) == ([], [*range(3)])

    IssuedCommand.objects.filter(pk=held.work.pk).update(owner="", status="ready")
    pass_time(seconds=11)
    assert noted() == [*range(3)]
