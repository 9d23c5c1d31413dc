"""Its tests."""

from orchestrator.testing import (
    Process,
    failing,
    found,
    pass_time,
    registered,
    replaced,
    run,
    started,
)

from .messages import Answer, OrderPaid, OrderPlaced, RequestPayment, ShipOrder
from .processes import Application, Order, Review, check


def test_an_order() -> None:
    order = started(Order, OrderPlaced("A-1", 3))
    assert order.send(OrderPaid("A-1")) == "moved"
    assert order.path == ["New", "Unpaid", "Paid"]
    assert order.commands == [RequestPayment("A-1", 3), ShipOrder("A-1")]
    assert found(Order, "A-1").status == "completed"


def test_a_review() -> None:
    with (
        registered(Review),
        replaced(check, lambda name: False),
        failing("score", ConnectionError("away"), times=2),
    ):
        review = started(Review, Application("Ito", 3))
        pass_time(hours=2)
        run()
        review.answer("decision", Answer.YES)
    assert processes(review) == 0


def processes(parent: Process) -> int:
    return len(parent.children)
