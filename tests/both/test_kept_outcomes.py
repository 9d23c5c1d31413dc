"""While the database refuses the outcome of a function, its worker keeps it, and does not call the function again."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from django.db import connection

from orchestrator import Answer, start_process
from orchestrator.definition import (
    Workflow,
    step,
)
from orchestrator.definition.workflow.rows import then
from orchestrator.engine.loops.drain import drain
from orchestrator.exceptions import Permanent, Skip
from orchestrator.models import Incident, IssuedCommand, ProcessInstance, StepRun
from orchestrator.testing import registered
from tests.apps.noting import Note, Noting, Opened
from tests.apps.process_managers.fixtures import SetHandler, handler

__all__ = ["handler"]

pytestmark = pytest.mark.django_db(transaction=True)

ends: list[Callable[[], object]] = []
"""What a function does at its end."""
calls: list[str] = []


def work() -> str:
    calls.append("work")
    return end("done")


def end(result: str) -> str:
    for one in (*ends,):
        one()
    return result


def after_it() -> None:
    calls.append("after")


class Plain(Workflow):
    flow = (then(step(work), after_it),)


class Once(Workflow):
    flow = (then(step(work, idempotent=False), after_it),)


@pytest.fixture(autouse=True, scope="module")
def known() -> Iterator[None]:
    with registered(Plain, Once, Noting):
        yield


@pytest.fixture(autouse=True)
def whole() -> None:
    calls.clear()
    ends.clear()


@contextmanager
def locked_rows() -> Iterator[None]:
    """Have somebody else hold all processes."""
    other = connection.copy()
    lock = "SELECT 1 FROM orchestrator_processinstance FOR UPDATE"
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN IMMEDIATE" if on_sqlite() else "BEGIN")
            if not on_sqlite():
                cursor.execute(lock)
        yield
    finally:
        other.close()


def on_sqlite() -> bool:
    return bool(connection.vendor == "sqlite")


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Have all processes locked from the end of a function until the worker has waited twice."""
    pauses = list[float]()
    with ExitStack() as others:

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            hurry()
            if len(pauses) == 2:
                others.close()

        def begin() -> None:
            ends.remove(begin)
            others.enter_context(locked_rows())

        monkeypatch.setattr("orchestrator.engine.work.keeping.sleep", sleep)
        ends.append(begin)
        hurry()
        yield pauses


def hurry() -> None:
    """Do not wait for the lock as long as usual."""
    with connection.cursor() as cursor:
        cursor.execute(
            "PRAGMA busy_timeout = 20" if on_sqlite() else "SET lock_timeout = 20"
        )


def ran(definition: Any) -> ProcessInstance:
    """Run a process with real commits, which others see."""
    start_process(definition, id="a")
    drain()
    return ProcessInstance.objects.get()


@pytest.mark.parametrize("definition", [Plain, Once])
def test_a_result_is_stored_later(definition: Any, refusing: list[float]) -> None:
    process = ran(definition)

    assert (process.status, calls) == ("completed", ["work", "after"])
    assert len(refusing) == 2
    assert refusing[1] > refusing[0] / 2
    assert [run.attempt for run in StepRun.objects.all()] == [1, 1]
    assert Incident.objects.count() == 0


def test_so_is_an_error(refusing: list[float]) -> None:
    def fail() -> None:
        raise Permanent("it cannot be done")

    ends.append(fail)
    process = ran(Plain)

    assert (process.status, calls, len(refusing)) == ("failed", ["work"], 2)
    assert Incident.objects.get().message == "Permanent: it cannot be done"


def test_so_is_what_was_passed_over(refusing: list[float]) -> None:
    def skip() -> None:
        raise Skip("nothing to do")

    ends.append(skip)
    process = ran(Plain)

    assert (process.status, calls) == ("completed", ["work", "after"])


def test_results_that_were_to_be_stored_together_are_stored_each_later(
    refusing: list[float],
) -> None:
    for key in "abc":
        start_process(Plain, id=key)
    drain()

    assert sorted(calls) == ["after"] * 3 + ["work"] * 3
    assert {run.attempt for run in StepRun.objects.all()} == {1}


def answered(command: Note) -> Answer:
    return Answer(work())


def failed(command: Note) -> Answer:
    raise Permanent(work())


@pytest.mark.parametrize(("handle", "status"), [(answered, "done"), (failed, "failed")])
def test_so_is_the_outcome_of_a_command(
    handler: SetHandler, refusing: list[float], handle: Any, status: str
) -> None:
    handler(Note, handle, after_commit=True)
    start_process(Noting, Opened(1), id="a")
    drain()

    command = IssuedCommand.objects.get()
    assert (command.status, command.attempt, calls) == (status, 1, ["work"])
    assert len(refusing) == 2
