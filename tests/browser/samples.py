"""One of everything that the pages can show, and texts that would do harm if they were taken for markup."""

from examples.order_listing.messages import (
    Destination,
    ListedOnExternal,
    ListedOnInternal,
)
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from orchestrator import send_event
from orchestrator.engine.loops.drain import drain

HARMFUL = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "</textarea><script>alert(1)</script>",
    "{{ 7*7 }}{% load x %}",
    '<hx-partial hx-target="#main"><b id=planted>planted</b></hx-partial>',
    '" autofocus onfocus=alert(1) x="',
    "]]><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "</svg><script>alert(1)</script>",
    "\u202eeslaf\u2066",
)
"""Texts that try to leave the place where a page shows them."""


def orders(
    description: str = "50 MWh base load, Tokyo area", order_id: str = ""
) -> dict[str, Order]:
    """Orders that have completed, failed, and got an event too early."""
    placed = {
        "completed": place_order(Destination.INTERNAL, description, order_id),
        "failed": place_order(Destination.BOTH, description),
        "early": place_order(Destination.EXTERNAL, description),
    }
    drain()
    early = placed["early"]
    send_event(
        ListedOnExternal(early.order_id),
        id=f"early {early.order_id}",
        source="exchange",
        process_id=early.process_id,
    )
    send_event(
        ListedOnInternal("nobody"),
        id="lost",
        source="exchange",
        correlation_key="nobody",
    )
    drain()
    return placed
