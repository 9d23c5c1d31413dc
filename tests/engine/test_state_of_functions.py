"""What a function activates ends with it: each piece of work begins with the state that its worker began with."""

import decimal
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from django.core.cache import caches
from django.utils import timezone, translation

from orchestrator.definition import (
    Workflow,
    case,
    route,
    step,
)
from orchestrator.definition.workflow.rows import then
from orchestrator.engine.loops.drain import drain
from orchestrator.testing import registered, started
from tests.apps.noting import Note, Noting, Opened
from tests.apps.process_managers.fixtures import SetHandler, handler

__all__ = ["handler"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "whole")]

tenant: ContextVar[str] = ContextVar("tenant", default="none")
calls: list[str] = []
seen: list[object] = []


def state() -> tuple[object, ...]:
    zone = timezone.get_current_timezone_name()
    own = decimal.getcontext()
    return translation.get_language(), zone, own.prec, own.rounding, tenant.get()


def spoil(*given: Any) -> bool:
    calls.append("spoil")
    translation.activate("ja")
    timezone.activate("Asia/Tokyo")
    decimal.getcontext().prec = 3
    decimal.getcontext().rounding = decimal.ROUND_UP
    tenant.set("a")
    return True


def before() -> None:
    spoil()


async def before_asynchronously() -> None:
    spoil()


def fail() -> None:
    spoil()
    raise RuntimeError("after it")


def look() -> None:
    seen.append(state())


class Plain(Workflow):
    flow = (then(step(before), look),)


class Transactional(Workflow):
    flow = (then(step(before, transactional=True), look),)


class Asynchronous(Workflow):
    flow = (then(step(before_asynchronously), look),)


class Failing(Workflow):
    flow = (step(fail, retries=0),)


class Deciding(Workflow):
    flow = (step(before), route(before, case(spoil, to=look), otherwise=look))


used: list[object] = []


def use() -> None:
    used.append(caches["default"])


class Using(Workflow):
    flow = (then(step(use), step(use, "again")),)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(
        Plain, Transactional, Asynchronous, Failing, Deciding, Using, Noting
    ):
        yield


@pytest.fixture
def whole() -> None:
    calls.clear()
    seen.clear()


def handled(set_handler: SetHandler, *, after_commit: bool) -> None:
    set_handler(Note, spoil_for, after_commit=after_commit)
    started(Noting, Opened(1))


def spoil_for(command: Note) -> None:
    spoil()


def test_what_a_function_activates_ends_with_it(handler: SetHandler) -> None:
    clean = state()
    ways: dict[str, Callable[[], object]] = {
        **{
            one.__name__: lambda one=one: started(one)  # type: ignore[misc]
            for one in (Plain, Transactional, Asynchronous, Failing, Deciding)
        },
        "handler": lambda: handled(handler, after_commit=False),
        "handler after the commit": lambda: handled(handler, after_commit=True),
    }
    found = {}
    for name, way in ways.items():
        calls.clear()
        way()
        found[name] = (bool(calls), state(), {*seen} <= {clean})

    assert found == dict.fromkeys(ways, (True, clean, True))


def test_the_caches_of_a_worker_stay_open() -> None:
    drain()
    started(Using)

    assert len(used) == 2
    assert used[0] is used[1]
