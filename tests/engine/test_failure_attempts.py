"""The number of attempts of a caught failure: how often the function was called, however its attempts ended."""

import os
from collections.abc import Iterator

import pytest

from orchestrator import Permanent, start_process
from orchestrator.definition import (
    Failure,
    Workflow,
    case,
    catch,
    each,
    fork,
    join,
    run,
    step,
)
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.steps.runner import CLAIMED
from orchestrator.engine.work.leases import work_name
from orchestrator.exceptions import NoCase, SubprocessFailed
from orchestrator.models import Lost, StepRun
from orchestrator.testing import Process, registered
from orchestrator.workers.current_worker import CurrentWorker
from orchestrator.workers.database_process import WorkerReport
from orchestrator.workers.supervisor import WorkerProcess

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]


def work() -> int:
    raise ConnectionError("nobody answers")


async def work_abroad() -> int:
    raise ConnectionError("nobody answers abroad")


def decline() -> int:
    raise Permanent("no")


def left() -> int:
    return 1


def right() -> int:
    return 2


def is_empty(numbers: list[int]) -> bool:
    return not numbers


def ten() -> list[int]:
    return [10]


def double(item: int) -> int:
    raise ConnectionError(f"{item} is too much")


def add(double: list[int]) -> int:
    return sum(double)


def both(left: int, right: int) -> int:
    return left + right


def tell(failure: Failure) -> str:
    return f"{failure.type}, {failure.attempts}"


twice = step(work, retries=1, backoff=0.001)
abroad = step(work_abroad, retries=1, backoff=0.001)
once = step(work, idempotent=False)


class Twice(Workflow):
    """A step with two attempts."""

    flow = (twice, catch(twice, error=Exception, to=tell))


class Once(Workflow):
    """A step that must not be called twice."""

    flow = (once, catch(once, error=Exception, to=tell))


class Abroad(Workflow):
    """A step that waits outside, with two attempts."""

    flow = (abroad, catch(abroad, error=Exception, to=tell))


class Elements(Workflow):
    """A map of one element with two attempts."""

    of_two = step(double, retries=1, backoff=0.001)
    flow = (
        each(ten, over="", do=of_two, into=add),
        catch(of_two, error=Exception, to=tell),
    )


class Starved(Workflow):
    """A join that needs two branches, of which one is not taken."""

    flow = (
        fork(ten, into=[left, case(is_empty, to=right)]),
        join(left, right, into=both, wait_for=2),
        catch(both, error=Permanent, to=tell),
    )


class Child(Workflow):
    """A sub-process that declines."""

    flow = (decline,)


class Parent(Workflow):
    """A step that runs a sub-process."""

    child = run(Child, "child")
    flow = (child, catch(child, error=SubprocessFailed, to=tell))


class Rates:
    """A service that a condition asks: it answers at the third time."""

    asked = 0


def give() -> int:
    Rates.asked = 0
    return 5


async def give_abroad() -> int:
    Rates.asked = 0
    return 5


def is_high(value: int) -> bool:
    Rates.asked += 1
    if Rates.asked < 3:
        raise ValueError("the service of rates is away")
    return False


giving = step(give, retries=3, backoff=0.001)
giving_abroad = step(give_abroad, retries=3, backoff=0.001)


class Undecided(Workflow):
    """A step that is called once, with a condition that is tried three times and then fits nothing."""

    flow = (
        fork(giving, into=[case(is_high, to=left)]),
        catch(giving, error=NoCase, to=tell),
    )


class UndecidedAbroad(Workflow):
    """The same with a step that waits outside."""

    flow = (
        fork(giving_abroad, into=[case(is_high, to=left)]),
        catch(giving_abroad, error=NoCase, to=tell),
    )


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    kinds = Twice, Once, Abroad, Elements, Starved, Child, Parent
    with registered(*kinds, Undecided, UndecidedAbroad):
        yield


def lose(how: Lost) -> None:
    """Let a worker claim the next step, and be lost in this way while it is called."""
    child = WorkerProcess(os.getpid(), CurrentWorker())
    queue = StepRun.objects.get(finished_at=None).queue
    [claimed] = step_runs.claim(queue, child.worker.owner, 1, 10, **CLAIMED)
    with child.worker.slot.watch(300, work_name(claimed.work)):
        WorkerReport("supervisor", "default", [], [child.as_lost(how)]).store()


def told(definition: type[Workflow], *lost: Lost) -> str:
    """Return the stored failure of a step: its first attempts are lost in these ways, and the others raise."""
    process = Process(start_process(definition).process_id)
    for how in lost:
        lose(how)
    return str(process.finish().result_of("tell"))


CASES: list[tuple[type[Workflow], tuple[Lost, ...], str]] = [
    (Twice, (), "ConnectionError, 2"),
    (Twice, (Lost.TIMED_OUT,), "ConnectionError, 2"),
    (Twice, (Lost.TIMED_OUT, Lost.TIMED_OUT), "TimedOut, 2"),
    (Twice, (Lost.DIED, Lost.DIED), "WorkerDied, 2"),
    (Twice, (Lost.DIED, Lost.TIMED_OUT), "TimedOut, 2"),
    (Twice, (Lost.CUT_OFF, Lost.TIMED_OUT, Lost.TIMED_OUT), "TimedOut, 2"),
    (Once, (Lost.TIMED_OUT,), "Interrupted, 1"),
    (Once, (Lost.DIED,), "Interrupted, 1"),
    (Once, (Lost.CUT_OFF,), "Interrupted, 1"),
    (Abroad, (), "ConnectionError, 2"),
    (Abroad, (Lost.TIMED_OUT, Lost.TIMED_OUT), "TimedOut, 2"),
    (Elements, (), "ConnectionError, 2"),
    (Parent, (), "SubprocessDeclined, 1"),
    (Starved, (), "Permanent, 0"),
    (Undecided, (), "NoCase, 1"),
    (UndecidedAbroad, (), "NoCase, 1"),
    (Undecided, (Lost.TIMED_OUT,), "NoCase, 2"),
]


def test_the_attempts_of_a_failure_are_the_calls_of_its_function() -> None:
    found = {(one, lost): told(one, *lost) for one, lost, _ in CASES}

    assert found == {(one, lost): said for one, lost, said in CASES}
