"""The exchange's order book: takes orders once each, and decides what to announce about them and when."""

from __future__ import annotations

import random
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple
from uuid import uuid4

from examples.exchange.announcements import Announcement, announce
from examples.exchange.behaviour import Behaviour
from examples.exchange.courier import Courier

MOST_KEYS = 20_000  # idempotency keys that are remembered
EARLY_WAIT = 2.0  # seconds that an answer is held back for its call back to be first
REASONS = (
    "credit limit reached",
    "area closed for maintenance",
    "price outside the band",
)
BORN = (
    "10 MWh base load, Hokkaido area",
    "30 MWh peak load, Tohoku area",
    "120 MWh base load, Chubu area",
    "15 MWh weekend base load, Kyushu area",
)


class Reply(NamedTuple):
    """The answer to an order: HTTP status and JSON body."""

    status: int
    body: Mapping[str, object]


class Book:
    """Orders by idempotency key.

    Args:
        courier: brings the announcements.
        behaviour: how to behave at first.
        seed: makes the dice fall the same way again; None for any way.
    """

    def __init__(
        self, courier: Courier, behaviour: Behaviour, seed: int | None = None
    ) -> None:
        self.behaviour = behaviour
        self._courier = courier
        self._dice = random.Random(seed)  # noqa: S311  a simulation needs a seed, not secrecy
        self._taken: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, key: str, order: dict[str, str]) -> Reply:
        """Takes an order, or says that it already has; the same key never makes a second order."""
        if self.happens(self.behaviour.fail) or self._courier.full():
            return Reply(503, {"error": "unavailable", "detail": "try again later"})
        if self.happens(self.behaviour.refuse):
            return Reply(
                403, {"error": "refused", "detail": "this account may not trade now"}
            )
        with self._lock:
            external_id = self._taken.get(key)
            new = external_id is None
            if external_id is None:
                external_id = self._taken[key] = f"EX-{uuid4().hex[:10].upper()}"
                if len(self._taken) > MOST_KEYS:
                    self._taken.popitem(last=False)
        if new:
            self._answer(order, external_id)
        if new and self.happens(self.behaviour.lose):
            return Reply(503, {"error": "unavailable", "detail": "the answer was lost"})
        return Reply(
            202, {"external_id": external_id, "request_id": order["request_id"]}
        )

    def bear(self) -> None:
        """An order begins here, without anybody's request."""
        external_id = f"EX-{uuid4().hex[:10].upper()}"
        description = self._choice(BORN)
        self._courier.send(_created(external_id, external_id, description), 0)

    def _answer(self, order: dict[str, str], external_id: str) -> None:
        created = _created(
            order["order_id"], external_id, order["description"], order["request_id"]
        )
        rejected = announce(
            "ExternalOrderRejected",
            {"reason": self._choice(REASONS)},
            order["request_id"],
        )
        said, opposite = created, rejected
        if self.happens(self.behaviour.reject):
            said, opposite = rejected, created
        if self.happens(self.behaviour.early):
            self._courier.send(said, 0).wait(EARLY_WAIT)
        else:
            self._courier.send(said, self._delay())
        if self.happens(self.behaviour.twice):
            self._courier.send(said, self._delay())
        if self.happens(self.behaviour.contradict):
            self._courier.send(opposite, self.behaviour.longest * 2)

    def _delay(self) -> float:
        behaviour = self.behaviour
        with self._lock:
            delay = self._dice.uniform(behaviour.shortest, behaviour.longest)
            late = self._dice.random() < behaviour.late
        return delay * 5 if late else delay

    def happens(self, chance: float) -> bool:
        """Throws the dice."""
        with self._lock:
            return self._dice.random() < chance

    def _choice(self, options: tuple[str, ...]) -> str:
        with self._lock:
            return self._dice.choice(options)


def _created(
    order_id: str, external_id: str, description: str, request_id: str = ""
) -> Announcement:
    data = {
        "order_id": order_id,
        "external_id": external_id,
        "description": description,
    }
    return announce("ExternalOrderCreated", data, request_id)
