"""Orders whose events four senders deliver at once, each 1 to 3 times, shuffled: all end as the table says.

Beside what the exchange says, somebody says again, in any order, what the order's own handlers say: most of it comes
before its step, all of it once too often. It must wait, be taken at most once, and in the end be shown, not lost.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from uuid6 import uuid7

from examples.order_listing.messages import (
    Destination,
    ExternalOrderCreated,
    ExternalOrderRejected,
    ListedOnExternal,
    ListedOnInternal,
    OrderCreated,
)
from examples.order_listing.processes import OrderListing
from examples.order_listing.promise import disagreements
from orchestrator import send_event, start_process
from orchestrator.definition import Event
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    Worker,
)
from tests.reliability.senders import send_all
from tests.services.crews import unfinished
from tests.services.exchange import ExchangeProcess
from tests.services.patience import wait_for
from tests.services.sizes import size
from tests.services.workers import Workers

ORDERS, SENDERS, SEED = size(15, full=1_000), 4, 20
WHAT = "50 MWh base load, Tokyo area"
INTERNAL, EXTERNAL, BOTH = Destination.INTERNAL, Destination.EXTERNAL, Destination.BOTH

TO_CREATION = "NotStarted AwaitingExternalCreation"
REFUSED = f"{TO_CREATION} Completed"
TO_LISTING = f"{TO_CREATION} AwaitingExternalListing"
PATHS = {
    (INTERNAL, False): "NotStarted AwaitingInternalListing Completed",
    (EXTERNAL, False): f"{TO_LISTING} Completed",
    (BOTH, False): f"{TO_LISTING} AwaitingInternalListing Completed",
    (EXTERNAL, True): REFUSED,
    (BOTH, True): REFUSED,
}
SUCCEEDED = "NotifyCreationSucceeded RequestExternalCreation"
FAILED = "NotifyCreationFailed RequestExternalCreation"
COMMANDS = {
    (INTERNAL, False): "ListOnInternal NotifyCreationSucceeded",
    (EXTERNAL, False): f"ListOnExternal {SUCCEEDED}",
    (BOTH, False): f"ListOnExternal ListOnInternal {SUCCEEDED}",
    (EXTERNAL, True): FAILED,
    (BOTH, True): FAILED,
}
"""Destination and whether the exchange rejects the order -> what the table says happens, each once."""


@dataclass(frozen=True)
class Case:
    """One order and what the world says about it."""

    order_id: str
    destination: Destination
    rejected: bool
    process_id: UUID = field(default_factory=uuid7)

    @property
    def kind(self) -> tuple[Destination, bool]:
        return self.destination, self.rejected

    @property
    def start(self) -> OrderCreated:
        return OrderCreated(self.order_id, self.destination, WHAT)

    @property
    def later(self) -> list[Event]:
        its = self.order_id
        said: list[Event] = [ListedOnExternal(its), ListedOnInternal(its)]
        if self.rejected:
            said.append(ExternalOrderRejected("credit limit reached"))
        elif self.destination != INTERNAL:
            said.append(ExternalOrderCreated(its, f"EX-{its}", WHAT))
        return said


@dataclass(frozen=True)
class Delivery:
    """One sending of one event."""

    case: Case
    event: Event

    @property
    def id(self) -> str:
        return f"{self.case.order_id} {type(self.event).__name__}"

    def send(self) -> None:
        starts = isinstance(self.event, OrderCreated)
        send = partial(start_process, OrderListing) if starts else send_event
        to = self.case.process_id
        send(self.event, id=self.id, source="senders", process_id=to)


def cases(dice: random.Random) -> Iterator[Case]:
    for number in range(ORDERS):
        destination = dice.choice([INTERNAL, EXTERNAL, BOTH, BOTH])
        rejected = destination != INTERNAL and dice.random() < 0.2
        yield Case(f"O-{number}", destination, rejected)


def shuffled(orders: list[Case], dice: random.Random) -> list[Delivery]:
    """Return all deliveries: the orders mixed with each other, each order's start first, the rest in any order."""
    queues = []
    for case in orders:
        rest = [Delivery(case, case.start)] * dice.randint(0, 2)
        for event in case.later:
            rest += [Delivery(case, event)] * dice.randint(1, 3)
        dice.shuffle(rest)
        queues.append([*rest, Delivery(case, case.start)])
    turns = [queue for queue in queues for _ in queue]
    dice.shuffle(turns)
    return [queue.pop() for queue in turns]


def by_process(rows: Any, name: str) -> dict[UUID, str]:
    """Return what there is of each process, divided by spaces."""
    found = defaultdict[UUID, list[str]](list)
    for process_id, said in rows.values_list("instance_id", name):
        found[process_id].append(said)
    return {process_id: " ".join(names) for process_id, names in found.items()}


@pytest.mark.full_size("1,000 orders", seconds=240)
def test_every_order_ends_as_the_table_says(
    exchange: ExchangeProcess, workers: Workers
) -> None:
    # It takes the orders; the senders speak for it.
    exchange.behave(longest=3600, shortest=3600)
    dice = random.Random(SEED)
    orders = list(cases(dice))
    deliveries = shuffled(orders, dice)
    ended = ProcessInstance.objects.ended()
    events = InboxEvent.objects.filter(wake_at__isnull=False)
    commands = IssuedCommand.objects.filter(wake_at__isnull=False)

    def all_ended() -> bool:
        due = events.exists() or commands.exists()
        return ended.count() == ORDERS and not due

    said = partial(unfinished, workers)
    wait_for(lambda: Worker.objects.count() == 2, 30, said)
    send_all(
        *([one.send for one in deliveries[turn::SENDERS]] for turn in range(SENDERS))
    )
    wait_for(all_ended, 240, said)

    # Every order ended, by the way and with the commands that the table says.
    ends = set(ProcessInstance.objects.values_list("status", "step"))
    assert ends == {(Status.COMPLETED, "Completed")}
    paths = by_process(StepRun.objects.order_by("id"), "node")
    assert paths == {case.process_id: PATHS[case.kind] for case in orders}
    issued = IssuedCommand.objects.exclude(instance=None).order_by("type")
    said_of = {case.process_id: COMMANDS[case.kind] for case in orders}
    assert by_process(issued, "type") == said_of
    # Nothing is missing from the inbox: a row for every event, counting how often it was repeated.
    sent = Counter(delivery.id for delivery in deliveries)
    kept = InboxEvent.objects.filter(source="senders")
    repeats = dict(kept.values_list("event_id", "repeats"))
    assert repeats == {id: times - 1 for id, times in sent.items()}
    # Nothing was applied twice: as many events moved a process as there are transitions, the others are shown.
    moves = sum(len(PATHS[case.kind].split()) - 1 for case in orders)
    verdicts = Counter(InboxEvent.objects.values_list("verdict", flat=True))
    assert verdicts["started"] == ORDERS
    assert verdicts["started"] + verdicts["moved"] == moves
    assert Checkpoint.objects.exclude(edge="").count() == moves
    assert verdicts.keys() == {"started", "moved", "rejected", "unexpected"}
    assert disagreements() == []
