"""Steps that would end their worker, hang it or break it, in every way there is."""

import asyncio
import ctypes
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from django.db import connection, transaction

from orchestrator.definition import Workflow, case, each, route, start, step, then
from tests.apps.patterns.ledger import note
from tests.apps.patterns.limits import give
from tests.apps.patterns.patterns import How, Numbers

LONG = 600  # seconds that a step hangs


def swallow() -> NoReturn:
    """Goes on whatever is thrown at it."""
    while True:
        with suppress(BaseException):
            time.sleep(LONG)


def hold_the_interpreter() -> None:
    """Sleeps in C without letting any other Python code run."""
    ctypes.PyDLL(None).sleep(LONG)


def fork_and_go_on() -> str:
    """Makes a copy of its worker that goes on as if it were the worker."""
    copy = os.fork()
    if copy == 0:
        return "by the copy"
    os.waitpid(copy, 0)
    return "by the worker"


def deeper(depth: int = 0) -> int:
    return deeper(depth + 1) + 1


def interrupt() -> NoReturn:
    raise KeyboardInterrupt


def end_generator() -> NoReturn:
    raise GeneratorExit


def cancel() -> NoReturn:
    raise asyncio.CancelledError


def use_memory_up() -> NoReturn:
    raise MemoryError


class Unspeakable(Exception):
    """An error that cannot even be told."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def fail_without_words() -> NoReturn:
    raise Unspeakable


def leave_a_transaction_open() -> None:
    """Begins a transaction and forgets it."""
    transaction.Atomic(None, savepoint=True, durable=False).__enter__()
    note("in a transaction that nobody ends")


def leave_a_broken_connection() -> None:
    connection.close()


MISBEHAVIOUR: dict[str, Callable[[], Any]] = {
    "swallow": swallow,
    "hold the interpreter": hold_the_interpreter,
    "fork": fork_and_go_on,
    "exit the process": lambda: os._exit(3),
    "exit": lambda: sys.exit(3),
    "interrupt": interrupt,
    "end a generator": end_generator,
    "cancel": cancel,
    "recursion": deeper,
    "memory": use_memory_up,
    "without words": fail_without_words,
    "open transaction": leave_a_transaction_open,
    "broken connection": leave_a_broken_connection,
}


def misbehave(how: str) -> str:
    """Does what its input says."""
    return str(MISBEHAVIOUR[how]()) if how else "well"


def follow(misbehave: str) -> str:
    note(f"followed {misbehave}")
    return misbehave


careless = step(misbehave, retries=1, backoff=0.01)
hurried = step(misbehave, retries=1, timeout=0.6, backoff=0.01)


class Misbehaving(Workflow):
    """A step that does what its input says, tried twice."""

    Input = How
    flow = (then(careless, follow),)


class Hanging(Workflow):
    """The same with little time, for what takes for ever."""

    Input = How
    flow = (hurried,)


# Workers that die after the step's function and before its commit


def charge(how: str) -> str:
    note("charged")
    return how


def is_settled(how: str) -> bool:
    if how == "die":
        os._exit(1)
    if how == "hang":
        time.sleep(LONG)
    return True


def deliver(charge: str) -> str:
    return charge


def refund(charge: str) -> str:
    return charge


class Charging(Workflow):
    """A step whose worker dies between its end and its commit."""

    Input = How
    flow = (
        start(step(charge, retries=1, idempotent=False)),
        route(charge, case(is_settled, to=deliver), otherwise=refund),
    )


def settle(how: str) -> str:
    note("settled")
    return how


def arrive(settle: str) -> str:
    return settle


def depart(settle: str) -> str:
    return settle


class Settling(Workflow):
    """The same, of a step that may run again."""

    Input = How
    flow = (
        start(step(settle, retries=1)),
        route(settle, case(is_settled, to=arrive), otherwise=depart),
    )


def send_one(item: int) -> int:
    note(f"sent {item}")
    if item == 2:
        os._exit(1)
    return item


def count_sent(send_one: list[int]) -> int:
    return len(send_one)


class Sending(Workflow):
    """Elements that must not run twice, the third of which ends its worker."""

    Input = Numbers
    flow = (
        start(give),
        each(give, over="", do=step(send_one, idempotent=False), into=count_sent),
    )
