"""Live processes whose steps the running code no longer has: they are set aside, and go on where the code has them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from orchestrator import registry
from orchestrator.definition import Event, Workflow, sleep, then, wait
from orchestrator.engine.storage import definitions
from orchestrator.testing import Process, pass_time, registered, started

pytestmark = pytest.mark.django_db


class Called(Event):
    number: int


def answer(call: Called) -> int:
    return call.number


HOUR = timedelta(hours=1)


class Before(Workflow):
    name = "line"
    flow = (then(sleep(HOUR, "pause"), wait(Called, "call", gives="call"), answer),)


class After(Workflow):
    name = "line"
    flow = (then(sleep(HOUR, "rest"), wait(Called, "bell", gives="call"), answer),)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    """For a whole module: the invariants are asked for after each test, and must still know the definition."""
    with registered(Before):
        yield


@contextmanager
def other_release() -> Iterator[None]:
    """Run the code in which the steps have other names."""
    definitions.forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.definitions, ("line", 1), After)
        yield
    definitions.forget()


def set_aside(process: Process, step: str) -> bool:
    told = f"the running code has no step {step} now"
    return process.incidents == [told] and process.status != "failed"


def test_a_sleep_that_is_gone_is_over_where_the_code_has_it() -> None:
    line = started(Before)
    with other_release():
        pass_time(hours=2)
        assert set_aside(line, "pause")
        assert line.open_steps == ["pause"]
    pass_time(minutes=1)

    assert (line.open_steps, line.incidents) == (["call"], [])


def test_an_event_for_a_wait_that_is_gone_is_taken_where_the_code_has_it() -> None:
    line = started(Before)
    pass_time(hours=2)
    with other_release():
        assert line.send(Called(7)) == "received"
        pass_time(hours=1)
        assert set_aside(line, "call")
    pass_time(minutes=1)

    assert (line.status, line.result) == ("completed", 7)
    assert line.incidents == []
