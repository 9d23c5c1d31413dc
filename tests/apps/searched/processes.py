"""Quotes: one ends at once, and one waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal

from orchestrator.definition import Event, Workflow, step, then, wait


class Accepted(Event):
    quote: str


@dataclass(frozen=True)
class Address:
    city: str
    country: str = "JP"


@dataclass(frozen=True)
class Asked:
    quote: str
    amount: int = 1
    price: Decimal = Decimal("9.50")
    vip: bool = False
    due: date = date(2026, 11, 23)
    at: datetime = datetime(2026, 11, 23, 10, 30, tzinfo=UTC)
    address: Address = field(default_factory=lambda: Address("Nagoya"))
    items: list[str] = field(default_factory=list)
    note: str | None = None
    text: str = ""


def price(quote: str) -> str:
    return quote


class Quote(Workflow):
    """Ends at once."""

    Input, correlation = Asked, "quote"
    flow = (step(price),)

    @staticmethod
    def summary(input: Asked) -> str:
        return f"{input.amount} to {input.address.city}"


class OpenQuote(Workflow):
    """Waits until it is accepted."""

    Input, correlation = Asked, "quote"
    flow = (then(price, wait(Accepted, "accepted")),)
