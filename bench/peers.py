"""Other systems beside the engine: chains of ten, and the public comparison by Fibonacci numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

from django.db import connection

from bench import rq_game
from bench.chain import LENGTH, chain
from bench.fibonacci import CHAINS, FibonacciGame
from bench.game import Game, Size
from bench.limits import LIMIT, limits
from bench.measurement import Measurement, Ratio
from bench.peer_game import PeerGame

BROKERS = ("huey", "celery")
"""The systems that keep nothing in a database."""
KEEPERS = ("dbos", "procrastinate")
"""The systems that keep their work in PostgreSQL."""


def measurement(size: Size) -> Measurement:
    """Return the limits, RQ, the other installed systems, and the engine."""
    there = [peer for peer in (*BROKERS, *KEEPERS) if not refusal_of(peer)]
    ours, rq = chain(size), rq_game.chains(size, LENGTH)[0]
    one = replace(size, count=1)
    chains = [rq, *(PeerGame(size, peer, LENGTH) for peer in there)]
    return Measurement(
        "peers",
        [
            *limits(replace(size, count=size.count * LENGTH)),
            *chains,
            ours,
            *fibonacci(one, there),
        ],
        [
            Ratio("of RQ", "per_second", [ours.name], rq.name),
            Ratio("of the limit", "per_second", [ours.name], LIMIT),
            Ratio(
                "of Procession", "per_second", [one.name for one in chains], ours.name
            ),
        ],
        f"{rq_game.START} RQ, huey and Celery keep no record of a step; procrastinate keeps its jobs and DBOS each "
        "step, as the engine does. Of the chains of Fibonacci numbers one runs at a time: the total is from the first "
        "step's begin to the last one's end, the gap from one step's end to the next one's begin, in the median.",
        [
            f"{peer}: {why}."
            for peer in (*BROKERS, *KEEPERS)
            if (why := refusal_of(peer))
        ],
    )


def fibonacci(size: Size, there: list[str]) -> Iterator[Game]:
    """Return one chain in each system."""
    for length, number in CHAINS:
        for peer in there:
            yield PeerGame(size, peer, length, number)
        yield FibonacciGame(size, length, number)


def refusal_of(peer: str) -> str:
    """Return why a system cannot be measured; "" if it can."""
    if find_spec(peer) is None:
        return "not installed (pip install --group peers, in an environment of its own)"
    if peer in KEEPERS and connection.vendor != "postgresql":
        return "needs PostgreSQL"
    return ""
