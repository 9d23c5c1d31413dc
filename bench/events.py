"""Events into waiting process managers: received, handled, and both at once, beside RQ and the database's limit."""

from __future__ import annotations

from dataclasses import replace

from bench import rq_game
from bench.event_game import AtOnce, Handling, OneEvent, Receiving
from bench.game import Size
from bench.idle import ONE_BY_ONE
from bench.limits import LIMIT, limits
from bench.measurement import Measurement, Ratio
from bench.ping import AnnouncedPingPong, PingPong

BY_ID = "handled"
BATCH = 100
"""How many events one statement stores together."""


def measurement(size: Size) -> Measurement:
    """Return the games: receiving, handling without and with commands, both at once, and one event at a time."""
    rq, half = rq_game.no_ops(size), replace(size, count=size.count // 2)
    one = replace(size, count=2 * ONE_BY_ONE)
    by_key = "handled, by key"
    commanding = "handled, 1 command in the commit and 1 after it"
    handled = [
        Handling(size, BY_ID, PingPong),
        Handling(size, by_key, PingPong, by_key=True),
        Handling(half, commanding, AnnouncedPingPong, commands=2),
        AtOnce(half, "sent one by one and handled at once", PingPong),
        AtOnce(
            half, f"sent {BATCH} together and handled at once", PingPong, batch=BATCH
        ),
    ]
    names = [game.name for game in handled]
    return Measurement(
        "events",
        [
            *limits(size),
            rq,
            Receiving(half, "received, one by one", PingPong),
            Receiving(size, f"received, {BATCH} together", PingPong, batch=BATCH),
            *handled,
            OneEvent(one, "one event at a time", PingPong),
        ],
        [
            Ratio("of RQ's jobs", "per_second", names, rq.name),
            Ratio("of the limit", "per_second", names, LIMIT),
            Ratio("of by id", "per_second", [by_key], BY_ID),
        ],
        f"{rq_game.START} The p50 and p99 of sending and handling at once are from receipt to commit at "
        f"{AtOnce.LOAD:.0%} of its rate.",
    )
