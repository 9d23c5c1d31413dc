"""A purchase with commands, an answer, a deadline; its delivery with retries, a sleep, a wait, a map, a sub-process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

import orchestrator
from orchestrator import Permanent
from orchestrator.definition import (
    ProcessManager,
    StepContext,
    Workflow,
    after,
    catch,
    during,
    each,
    fork,
    join,
    repeat,
    run,
    sleep,
    start,
    step,
    then,
    undo,
    wait,
    when,
)
from tests.apps.two_releases.messages import (
    Arrived,
    Book,
    Closed,
    Paid,
    Placed,
    Remind,
    Tell,
    Told,
)

MOMENT = timedelta(milliseconds=200)


def paid(data: Purchase.Data, event: Paid) -> int:
    return data.amount + event.amount


class Purchase(ProcessManager):
    """An order is placed, its customer told; it is paid, and after a moment it is due."""

    class Step(StrEnum):
        NEW = "New"
        TOLD = "Told"
        PAID = "Paid"
        DUE = "Due"
        CLOSED = "Closed"

    @dataclass(frozen=True)
    class Data:
        order: str
        amount: int = 0

    correlation = "order"

    transitions = (
        during(Step.NEW, when(Placed).issue(Book, Tell).go_to(Step.TOLD)),
        during(Step.TOLD, when(Told).go_to(Step.PAID)),
        during(
            Step.PAID,
            when(Paid).set(amount=paid),
            after(MOMENT).issue(Remind).go_to(Step.DUE),
        ),
        during(
            Step.DUE,
            when(Paid).set(amount=paid),  # a payment that the deadline was before
            when(Closed).issue(Book).go_to(Step.CLOSED),
        ),
    )


def release() -> str:
    """Return the folder of the code that runs this."""
    return str(Path(orchestrator.__file__).parents[1])


def weigh(order: str) -> str:
    return release()


def label(weigh: str, context: StepContext) -> str:
    if context.attempt == 1:
        raise ConnectionError("no paper")
    return weigh


def find(parts: int) -> list[int]:
    return list(range(parts))


def pick(item: int, context: StepContext) -> int:
    context.progress(1, 1, "picked")
    if item == 0 and context.attempt == 1:
        raise ConnectionError("the shelf is closed")
    return item


def pack(pick: list[int]) -> int:
    return len(pick)


async def route(label: str, pack: int) -> str:
    return label


def knock(knock: int | None) -> int:
    return (knock or 0) + 1


def heard(knock: int) -> bool:
    return knock == 2


def thank(order: str) -> str:
    return release()


def take_back(route: str) -> None:
    """Undoes the route."""


rest = sleep(MOMENT, "rest")


class Bill(Workflow):
    """Bills a delivery."""

    name = "two-releases-bill"

    @dataclass(frozen=True)
    class Input:
        order: str

    flow = (then(weigh, rest, thank),)


drive = sleep(MOMENT, "drive")
arrival = wait(Arrived, "arrival")
bill = run(Bill, "bill")


class Delivery(Workflow):
    """Packs the items of an order, and brings them."""

    name = "two-releases-delivery"
    correlation = "order"

    @dataclass(frozen=True)
    class Input:
        order: str
        parts: int = 3

    flow = (
        start(weigh),
        fork(weigh, into=[label, find]),
        step(label, backoff=0.01),
        each(find, over="", do=step(pick, backoff=0.01), into=pack, item="item"),
        join(label, pack, into=route),
        undo(route, by=take_back),
        then(route, drive),
        repeat(drive, knock, until=heard, at_most=3, then=arrival),
        then(arrival, bill, thank),
    )


class Broken(Permanent):
    """A part is broken."""


def inspect(item: int) -> int:
    if item == 1:
        raise Broken("a part is broken")
    return item


def report(inspect: list[int]) -> int:
    return len(inspect)


def explain(order: str) -> str:
    return release()


class Inspection(Workflow):
    """Looks at all parts of an order, of which one is broken: a map that fails, and is caught."""

    name = "two-releases-inspection"

    @dataclass(frozen=True)
    class Input:
        order: str
        parts: int = 5

    flow = (
        start(find),
        each(find, over="", do=step(inspect, retries=0), into=report, window=2),
        catch(inspect, error=Broken, to=explain),
    )
