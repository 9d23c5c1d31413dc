"""Calls that are followed by others: by many, by some of which there may be only so many, after an edit."""

from typing import Any

from orchestrator import CorruptInput
from orchestrator.definition import Workflow, fork, step, then
from tests.apps.waiting_calls.processes import Told, call
from tests.apps.waiting_calls.ways import gate, is_open, spend, spend_thread


def opened(name: str) -> str:
    return name


async def left(opened: str, how: str) -> str:
    return await spend("left", how)


async def right(opened: str, how: str) -> str:
    return await spend("right", how)


async def last(name: str) -> str:
    return await spend("last", "wait 0.2")


BRANCHES = 8


class Spreading(Workflow):
    """Two calls at once, each followed by many."""

    Input = Told
    flow = (
        fork(opened, into=[left, right]),
        fork(left, into=[step(last, f"l{n}") for n in range(BRANCHES)]),
        fork(right, into=[step(last, f"r{n}") for n in range(BRANCHES)]),
    )


class Neighbour(Workflow):
    """A call that may not be made twice."""

    Input = Told
    flow = (step(call, "neighbour", retries=0, idempotent=False),)


before = step(call, "before")


def blocking(before: str) -> str:
    return spend_thread(before, "gate threads")


class ThenThread(Workflow):
    """A call, and then one that blocks one of two threads."""

    Input = Told
    flow = (then(before, step(blocking, threads=2)),)


async def odd(name: str, how: str) -> Any:
    await spend(name, how)
    return {frozenset([name]): 1}


class Odd(Workflow):
    """Gives what cannot be stored."""

    Input = Told
    flow = (step(odd, retries=0),)


async def limited(before: str) -> str:
    return await spend(before, "gate limited")


class ThenLimited(Workflow):
    """A call, and then one of which two may be in flight at once."""

    Input = Told
    flow = (then(before, step(limited, concurrency=2)),)


async def price(name: str) -> int:
    return 1


async def long_call(price: int, how: str) -> str:
    return await spend(f"long {price}", how)


async def pay(price: int, long_call: str) -> int:
    return price


class Priced(Workflow):
    """A price, a long call, and a payment of that price."""

    Input = Told
    flow = (then(price, long_call), then(long_call, pay))


def plain_price(name: str) -> int:
    return 1


def plain_long(plain_price: int, how: str) -> str:
    return spend_thread(f"long {plain_price}", how)


def plain_pay(plain_price: int, plain_long: str) -> int:
    return plain_price


class PlainPriced(Workflow):
    """The same in plain steps."""

    Input = Told
    flow = (then(plain_price, plain_long), then(plain_long, plain_pay))


async def rate(name: str) -> int:
    return 2 if is_open("second") else 1


async def long_rate(rate: int, how: str) -> str:
    return await spend(f"long {rate}", how)


async def pay_rate(rate: int, long_rate: str) -> int:
    return rate


class Rated(Workflow):
    """As Priced; the first step may be done again."""

    Input = Told
    flow = (then(rate, long_rate), then(long_rate, pay_rate))


async def checker(rate: int) -> str:
    await gate("check")
    if rate == 1:
        raise CorruptInput("rate", "one is no rate")
    return "good"


class Checked(Workflow):
    """As Rated; a branch beside the long call finds that the rate is bad."""

    Input = Told
    flow = (
        fork(rate, into=[long_rate, step(checker, backoff=0.01)]),
        then(long_rate, pay_rate),
    )
