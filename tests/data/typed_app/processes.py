"""A process manager and a workflow."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from orchestrator import Retry
from orchestrator.definition import (
    AsyncStepContext,
    ProcessManager,
    StepContext,
    Workflow,
    after,
    ask,
    catch,
    during,
    fork,
    ignore,
    join,
    step,
    stored,
    then,
    wait,
    when,
)

from .messages import Answer, OrderPaid, OrderPlaced, RequestPayment, ShipOrder


class Order(ProcessManager):
    """Has an order paid and shipped."""

    class Step(StrEnum):
        NEW = "New"
        UNPAID = "Unpaid"
        PAID = "Paid"

    @dataclass(frozen=True)
    class Data:
        order_id: str
        amount: int

    correlation = "order_id"
    transitions = (
        during(Step.NEW, when(OrderPlaced).issue(RequestPayment).go_to(Step.UNPAID)),
        during(
            Step.UNPAID,
            when(OrderPaid, order_id=stored("order_id"))
            .issue(ShipOrder)
            .go_to(Step.PAID),
            after(timedelta(hours=1)).escalate(),
            ignore(OrderPlaced),
        ),
    )


@dataclass(frozen=True)
class Application:
    """What a review begins with."""

    name: str
    amount: int


@dataclass(frozen=True)
class Score:
    """How good an application is."""

    points: int


def begin(name: str) -> None:
    """Tells that it was received."""


def score(amount: int, context: StepContext) -> Score:
    if context.attempt < 2:
        raise Retry(after=timedelta(seconds=5))
    return Score(amount)


async def check(name: str, context: AsyncStepContext) -> bool:
    await context.save(name)
    context.progress(1, 1)
    return bool(name) and await context.still_mine()


def blocks(name: str) -> str:
    return name


def merge(score: Score, check: bool) -> str:
    return f"{score.points} {check}"


def file(decision: Answer) -> None:
    """Puts it away."""


def close(name: str) -> None:
    """Nobody decided in time."""


def give_up(name: str) -> None:
    """Says no."""


class Review(Workflow):
    """Has an application reviewed."""

    Input = Application
    scored = step(score, retries=2, timeout=20)
    blocking = step(blocks, threads=20)
    decision = ask("decision", Answer, deadline=timedelta(days=1), late=close)
    paid = wait(OrderPaid, "paid")
    flow = (
        fork(begin, into=[scored, check]),
        join(scored, check, into=merge, wait_for="all"),
        then(merge, decision, file, paid, blocking),
        catch(merge, error=ValueError, to=give_up),
    )
