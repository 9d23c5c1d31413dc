"""What one simple event handler returns for the events of one process or key is received in their order."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
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
from orchestrator.definition import (
    Event,
    ProcessManager,
    after,
    during,
    ignore,
    when,
)
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.tables import commands
from orchestrator.models import InboxEvent, IssuedCommand
from orchestrator.testing import pass_time, run
from orchestrator.testing.clock import move_times_back
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db

ids = (str(number) for number in count())


class Seen(Event):
    thing: str
    number: int


class Noted(Event):
    thing: str
    number: int


class Told(Event):
    thing: str
    numbers: list[int]


def tell(event: Told) -> list[Seen]:
    return [Seen(event.thing, number) for number in event.numbers]


@dataclass(frozen=True)
class Thing:
    thing: str


class Watching(ProcessManager):
    """Takes each event that it is told of: so such events carry a key."""

    class Step(StrEnum):
        NEW = "New"
        OPEN = "Open"
        OVER = "Over"

    Data = Thing
    correlation = "thing"
    transitions = (
        during(Step.NEW, when(Seen).go_to(Step.OPEN)),
        during(Step.OPEN, ignore(Seen), after(timedelta(days=9)).go_to(Step.OVER)),
    )


known = knowing(Watching)


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
    monkeypatch.setitem(registry.reactions, "Told", [])
    reacts_to(Told)(tell)
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


@pytest.mark.parametrize("sender", [send, send_together])
@pytest.mark.parametrize("seconds", [3, 600])
def test_the_order_stays_where_the_clock_goes_back(
    sender: Callable[..., None], seconds: int
) -> None:
    """No supervisor has noticed it yet; the workers go on."""
    sender(range(6))
    sender(range(2), "b")
    move_times_back(timedelta(seconds=-seconds))
    sender(range(6, 12))
    sender(range(2, 4), "b")
    drain()
    pass_time(seconds=seconds)

    assert (noted(), noted("b")) == ([*range(12)], [*range(4)])


def test_the_order_stays_where_the_clock_goes_back_between_two_attempts(
    errors: dict[int, Exception],
) -> None:
    errors[1] = ConnectionError("no line")
    send(range(3))
    drain()
    move_times_back(timedelta(minutes=-10))
    send(range(3, 5))
    drain()
    pass_time(minutes=20)

    assert noted() == [*range(5)]


def test_what_others_return_keeps_its_order_where_the_clock_goes_back(
    errors: dict[int, Exception],
) -> None:
    """The events that one handler returns have a handler of their own."""
    errors[0] = ConnectionError("no line")
    send_event(Told("a", [0, 1, 2]), id=next(ids))
    drain()
    move_times_back(timedelta(minutes=-10))
    send_event(Told("a", [3, 4, 5]), id=next(ids))
    drain()
    pass_time(minutes=20)

    assert noted() == [*range(6)]


def test_a_reaction_without_others_in_its_line_is_issued_when_its_event_was_received() -> (
    None
):
    send(range(1))
    drain()
    move_times_back(timedelta(minutes=-10))
    send(range(1))
    drain()

    received = InboxEvent.objects.filter(type="Seen").values_list("received_at")
    assert set(IssuedCommand.objects.values_list("issued_at")) == set(received)
