"""Parcels whose couriers fail, for operations on many of them."""

from collections.abc import Callable
from itertools import count

import pytest

from orchestrator import Permanent
from orchestrator.models import ProcessInstance
from tests.apps.process_managers.desk import underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import BookCourier, Courier
from tests.services.bulk import a_moment
from tests.services.doing import raising, taking

__all__ = ["Failures", "accept", "fail", "refuse"]

Failures = Callable[[int], list[ProcessInstance]]


accept = taking
refuse = raising(Permanent("no line"))


@pytest.fixture
def fail(handler: SetHandler) -> Failures:
    """Return a function that has so many processes fail; a second attempt would work."""
    placed = count()

    def some(number: int) -> list[ProcessInstance]:
        handler(BookCourier, refuse, after_commit=True)
        found = [underway(f"P-{next(placed)}", Courier.PARTNER) for _ in range(number)]
        handler(BookCourier, accept, after_commit=True)
        a_moment()
        return found

    return some
