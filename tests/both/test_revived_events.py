"""An event that comes to be due again precedes the later ones that workers have claimed before."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import count
from uuid import UUID

import pytest
from uuid6 import uuid7

from orchestrator import send_event, start_process
from orchestrator.definition import (
    Event,
    ProcessManager,
    after,
    during,
    park,
    reject,
    when,
)
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.operations import deliver, discard, redeliver, retry
from orchestrator.engine.sql.table import Claimed
from orchestrator.engine.sql.tables import events
from orchestrator.models import InboxEvent, Verdict
from orchestrator.testing import Process, pass_time, run
from orchestrator.testing.clock import move_times_back
from tests.services.asking import asked
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db

ids = (f"event {number}" for number in count())
broken = set[int]()
unwanted = set[int]()


class Opened(Event):
    account: str


class Paid(Event):
    account: str
    number: int


class Frozen(Event):
    account: str


@dataclass(frozen=True)
class Account:
    account: str
    paid: tuple[int, ...] = ()


def is_readable(data: Account, event: Paid) -> bool:
    if event.number in broken:
        raise ValueError("unreadable")
    return event.number not in unwanted


def one_more(data: Account, event: Paid) -> tuple[int, ...]:
    return (*data.paid, event.number)


class Ledger(ProcessManager):
    class Step(StrEnum):
        NEW = "New"
        OPEN = "Open"
        FROZEN = "Frozen"
        CLOSING = "Closing"
        CLOSED = "Closed"

    Data = Account
    correlation = "account"
    transitions = (
        during(Step.NEW, when(Opened).go_to(Step.OPEN)),
        during(
            Step.OPEN,
            when(Paid, is_readable).set(paid=one_more),
            reject(Paid),
            when(Frozen).go_to(Step.FROZEN),
        ),
        during(
            Step.FROZEN,
            park(Paid),
            after(timedelta(hours=1)).go_to(Step.CLOSING),
        ),
        during(
            Step.CLOSING,
            when(Paid, is_readable).set(paid=one_more),
            park(Paid),
            when(Opened).go_to(Step.CLOSED),
        ),
    )


known = knowing(Ledger)


@pytest.fixture(autouse=True)
def nothing_is_broken() -> None:
    broken.clear()
    unwanted.clear()


def opened() -> UUID:
    pk = start_process(Ledger, Opened("A")).process_id
    run()
    return pk


def send(event: Event, pk: UUID) -> int:
    return send_event(event, id=next(ids), process_id=pk).number


def verdict(number: int) -> str:
    return InboxEvent.objects.get(pk=number).verdict


def failed(pk: UUID) -> int:
    broken.add(1)
    number = send(Paid("A", 1), pk)
    pass_time(hours=1)
    assert verdict(number) == Verdict.FAILED
    broken.clear()
    return number


def claimed_by_another(number: int, pk: UUID) -> Claimed[InboxEvent]:
    send(Paid("A", number), pk)
    [held] = events.claim("default", "another worker", 1, 7200)
    return held


Revive = Callable[[int, UUID], object]


@pytest.mark.parametrize(
    "revive",
    [
        lambda number, pk: redeliver(number, request=asked()),
        lambda number, pk: retry(pk, request=asked()),
        lambda number, pk: deliver(number, str(pk), request=asked()),
    ],
    ids=["redeliver", "retry", "deliver"],
)
def test_a_failed_event_that_people_revive_precedes_a_claimed_one(
    revive: Revive,
) -> None:
    pk = opened()
    first = failed(pk)
    held = claimed_by_another(2, pk)
    revive(first, pk)
    deliver_claimed(held.work)
    run()

    assert Process(pk).data.paid == (1, 2)


def test_a_rejected_event_that_people_redeliver_precedes_a_claimed_one() -> None:
    """Its process was in no trouble."""
    pk = opened()
    unwanted.add(1)
    first = send(Paid("A", 1), pk)
    run()
    assert verdict(first) == Verdict.REJECTED
    unwanted.clear()
    held = claimed_by_another(2, pk)
    redeliver(first, request=asked())
    deliver_claimed(held.work)
    run()

    assert Process(pk).data.paid == (1, 2)


def test_an_event_that_people_deliver_to_a_process_precedes_a_claimed_one() -> None:
    lost = send(Paid("A", 1), uuid7())
    run()
    assert verdict(lost) == Verdict.UNROUTED
    pk = opened()
    held = claimed_by_another(2, pk)
    deliver(lost, str(pk), request=asked())
    deliver_claimed(held.work)
    run()

    assert Process(pk).data.paid == (1, 2)


def test_an_unrouted_event_that_people_redeliver_precedes_what_its_start_has_behind_it() -> (
    None
):
    """The start and what follows it were claimed together before."""
    pk = uuid7()
    first = send(Paid("A", 1), pk)
    run()
    start_process(Ledger, Opened("A"), process_id=pk)
    later = send(Paid("A", 2), pk)
    held = events.claim("default", "another worker", 2, 7200)
    redeliver(first, request=asked())
    for item in held:
        deliver_claimed(item.work)
    run()

    assert verdict(later) == Verdict.MOVED
    assert Process(pk).data.paid == (1, 2)


def test_an_offered_event_between_two_attempts_precedes_a_claimed_one() -> None:
    pk = opened()
    send(Frozen("A"), pk)
    first = send(Paid("A", 1), pk)
    run()
    assert verdict(first) == Verdict.PARKED
    held = claimed_by_another(2, pk)
    broken.add(1)
    move_times_back(timedelta(hours=1))
    run()
    assert verdict(first) == Verdict.RECEIVED
    broken.clear()
    deliver_claimed(held.work)
    pass_time(minutes=10)

    assert Process(pk).data.paid == (1, 2)


def test_an_offered_event_goes_on_as_soon_as_a_failing_one_before_it_is_discarded() -> (
    None
):
    pk = opened()
    first = failed(pk)
    send(Frozen("A"), pk)
    second = send(Paid("A", 2), pk)
    run()
    unwanted.add(2)
    pass_time(hours=1)
    assert [verdict(first), verdict(second)] == [Verdict.FAILED, Verdict.PARKED]

    broken.add(1)
    redeliver(first, request=asked())
    run()
    unwanted.clear()
    # Offered by a move, it was given back until the next attempt of the one before it.
    offered = InboxEvent.objects.filter(pk=second)
    later = InboxEvent.objects.get(pk=first).wake_at
    offered.update(handled_at=None, wake_at=later)
    run()
    assert [verdict(first), verdict(second)] == [Verdict.RECEIVED, Verdict.PARKED]
    discard(first, request=asked())
    run()

    assert Process(pk).data.paid == (2,)


def test_an_overdue_event_that_no_row_takes_is_parked_once_though_another_has_failed() -> (
    None
):
    """People were told of it, and its process is in trouble: it is offered once, after the move."""
    pk = opened()
    failed(pk)
    send(Frozen("A"), pk)
    second = send(Paid("A", 2), pk)
    unwanted.add(2)
    pass_time(hours=1)

    event = InboxEvent.objects.get(pk=second)
    assert Process(pk).instance.step == "Closing"
    assert (event.verdict, event.attempt) == (Verdict.PARKED, 0)
    assert event.handled_at is not None
