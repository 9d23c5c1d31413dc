"""A map of which several elements have failed is tried again; what their failure had cancelled comes back once."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from orchestrator import Permanent
from orchestrator.definition import (
    Workflow,
    each,
    join,
    run,
    sleep,
    start,
    step,
)
from orchestrator.engine.operations import retry
from orchestrator.testing import pass_time, registered, started
from orchestrator.testing import run as go
from tests.services.asking import asked

pytestmark = pytest.mark.django_db

phones = {"dead": True}


@dataclass(frozen=True)
class Person:
    item: int


@dataclass(frozen=True)
class People:
    people: list[int]


def call(item: int) -> int:
    if phones["dead"]:
        raise Permanent("no line")
    return item


class Call(Workflow):
    Input = Person
    flow = (step(call, retries=0),)


def look_up(people: list[int]) -> list[int]:
    return people


def listen(calls: list[int]) -> int:
    return len(calls)


def end() -> str:
    return "over"


night = sleep(timedelta(days=1), "night")


class Calls(Workflow):
    """Calls of people, beside a pause that is given up when one of them fails."""

    Input = People
    flow = (
        start(look_up, night),
        each(look_up, over="", do=run(Call, "calls"), into=listen),
        join(listen, night, into=end, on_failure="fail_fast"),
    )


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(Call, Calls):
        yield


@pytest.fixture(autouse=True)
def dead_phones() -> None:
    phones["dead"] = True


def test_what_the_failure_of_several_elements_cancelled_comes_back_once() -> None:
    process = started(Calls, People([1, 2, 3]))
    assert process.status == "failed"
    phones["dead"] = False
    retry(process.id, request=asked())
    go()
    assert process.open_steps == ["night"]
    pass_time(timedelta(days=2))

    assert (process.status, process.result) == ("completed", "over")
