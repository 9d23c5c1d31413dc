"""A condition that raises behind a step is tried again alone: the step has returned, and is not called again."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import pytest
from django.db import OperationalError

from orchestrator import start_process
from orchestrator.definition import (
    Event,
    Workflow,
    ask,
    case,
    catch,
    each,
    fork,
    join,
    repeat,
    route,
    run,
    sleep,
    start,
    step,
    then,
    undo,
    wait,
)
from orchestrator.engine.invariants import violations
from orchestrator.engine.loops.drain import drain
from orchestrator.exceptions import (
    InvalidMessage,
    NoCase,
    OperationRefused,
    Permanent,
)
from orchestrator.queue import suppress_all_wakes
from orchestrator.testing import Process, found, pass_time, registered, started
from orchestrator.testing import run as run_due_work
from orchestrator.workers.shared_memory.claims import SharedClaims
from tests.services.operated import skipped
from tests.services.supervised import unhurried

__all__ = ["unhurried"]

pytestmark = pytest.mark.django_db

LONG = timedelta(hours=1)
calls = Counter[str]()


class Judge:
    """How the conditions answer: they raise the error if there is one."""

    error: type[BaseException] | None = None

    def __bool__(self) -> bool:
        calls["condition"] += 1
        if self.error is not None:
            raise self.error("out of a condition")
        return True


judge = Judge()


def bad(paid: Any) -> bool:
    """The condition of all workflows here."""
    return bool(judge)


@dataclass(frozen=True)
class Receipt:
    number: int = 1

    @property
    def parts(self) -> list[int]:
        return [1, 2] if judge else []

    @property
    def good(self) -> bool:
        return bool(judge)


class Answer(StrEnum):
    YES = "yes"
    NO = "no"


class Rung(Event):
    number: int = 1


def charge() -> Receipt:
    calls["charge"] += 1
    return Receipt()


async def charge_abroad() -> int:
    calls["charge"] += 1
    return 1


def charge_part(item: int) -> int:
    calls["charge"] += item
    return item


def numbers() -> list[int]:
    return [1, 0, 0]


def pack(item: int) -> int:
    return item


def count() -> int:
    return 0


def decline(verdict: Answer) -> None:
    raise Permanent("no")


no = {"falter": True}


def falter(verdict: Answer) -> int:
    if no:
        raise ValueError("not yet")
    return 0


def refund() -> None:
    calls["refund"] += 1


def ship() -> None:
    calls["ship"] += 1


def hold() -> None:
    calls["hold"] += 1


once = step(charge, retries=2, idempotent=False)
part = step(charge_part, retries=2, idempotent=False)
behind = route(charge, case(bad, to=ship), otherwise=hold)
behind_map = route(charge_part, case(bad, to=ship), otherwise=hold)


class Routed(Workflow):
    flow = (start(once), behind)


class Idempotent(Workflow):
    flow = (start(step(charge, retries=2)), behind)


class Forked(Workflow):
    flow = (start(once), fork(charge, into=[hold, case(bad, to=ship)]))


class Looped(Workflow):
    flow = (start(once), repeat(charge, until=bad, at_most=3, then=ship))


class ByField(Workflow):
    """The field that the cases compare is a property, which raises."""

    flow = (start(once), route(charge, on="good", to={True: ship, False: hold}))


class Abroad(Workflow):
    flow = (
        start(step(charge_abroad, retries=2, idempotent=False)),
        route(charge_abroad, case(bad, to=ship), otherwise=hold),
    )


class InThread(Workflow):
    flow = (start(step(charge, retries=2, idempotent=False, threads=2)), behind)


class Spread(Workflow):
    """The list of a map's elements is a property, which raises."""

    flow = (start(once), each(charge, over="parts", do=pack, into=ship))


class Mapped(Workflow):
    """The condition stands behind a map, whose last element decides."""

    flow = (each(numbers, over="", do=part, into=count), behind_map)


class MappedQuickly(Workflow):
    """Results of the elements are held, and stored together."""

    flow = (
        each(numbers, over="", do=step(charge_part, retries=2), into=count),
        behind_map,
    )


class Tolerant(Workflow):
    """No element has failed, so its map does not put up with it."""

    flow = (each(numbers, over="", do=part, into=count, tolerate=3), behind_map)


class Beside(Workflow):
    """Another step of the process is open."""

    flow = (start(once, sleep(10 * LONG, "nap")), behind)


class Caught(Workflow):
    """The step has not failed, so nothing catches it."""

    flow = (start(once), behind, catch(charge, error=Exception, to=refund))


class Undone(Workflow):
    """The step has not declined, so nothing is undone."""

    flow = (start(once), behind, undo(charge, by=refund))


class Inside(Workflow):
    """The step and its condition are those of a sub-process."""

    flow = (run(Routed, "routed"),)


class Charging(Workflow):
    flow = (once,)


charging = run(Charging)


class AfterChild(Workflow):
    """The condition stands behind a sub-process."""

    flow = (start(charging), route(charging, case(bad, to=ship), otherwise=hold))


nap = sleep(timedelta(seconds=1), "nap")


class AfterSleep(Workflow):
    flow = (then(once, nap), route(nap, case(bad, to=ship), otherwise=hold))


ring = wait(Rung, "ring")


class AfterEvent(Workflow):
    flow = (then(once, ring), route(ring, case(bad, to=ship), otherwise=hold))


verdict = ask("verdict", Answer)


class AfterAnswer(Workflow):
    flow = (then(once, verdict), route(verdict, case(bad, to=ship), otherwise=hold))


class Declined(Workflow):
    """A person has another step decline, while the condition raises."""

    flow = (
        start(once, verdict),
        behind,
        then(verdict, decline),
        undo(charge, by=refund),
    )


class Fast(Workflow):
    """Another branch fails, and cancels this one."""

    flow = (
        start(once, verdict),
        behind,
        then(verdict, step(falter, retries=0)),
        join(ship, hold, falter, into=count, on_failure="fail_fast"),
    )


class Unfit(Workflow):
    flow = (start(step(charge, retries=2)), route(charge, on="number", to={2: ship}))


class UnfitOnce(Workflow):
    flow = (start(once), route(charge, on="number", to={2: ship}))


BY_THEMSELVES: dict[type[Workflow], str] = {
    Routed: "bad",
    Idempotent: "bad",
    Forked: "bad",
    Looped: "bad",
    ByField: "route(charge, on='good')",
    Abroad: "bad",
    InThread: "bad",
    Spread: "each(charge, over='parts', do=pack)",
    Mapped: "bad",
    MappedQuickly: "bad",
    Tolerant: "bad",
    Beside: "bad",
    Caught: "bad",
    Undone: "bad",
    Inside: "bad",
    AfterChild: "bad",
    AfterSleep: "bad",
}
"""The workflows whose steps end by themselves, with what their incidents name."""

TRIES = {AfterChild: 4, AfterSleep: 4}
"""How often a condition is tried where the step has the usual retries."""


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    others = (Charging, AfterEvent, AfterAnswer, Declined, Fast, Unfit, UnfitOnce)
    with registered(*BY_THEMSELVES, *others):
        yield


def story(definition: type[Workflow], error: type[BaseException]) -> list[str]:
    """Return what is wrong in the story of one process, whose condition raises until it is mended after a retry."""
    calls.clear()
    judge.error = error
    process = started(definition)
    pass_time(LONG)
    named = f"{error.__name__}: {BY_THEMSELVES[definition]}: out of a condition"
    if not issubclass(error, Exception):
        named = f"ExitRefused: {BY_THEMSELVES[definition]}: "
    tries = 1 if error is Permanent else TRIES.get(definition, 3)
    wrong = [*told(process, named, tries)]
    process.retry()
    pass_time(LONG)
    wrong += [f"retried, {one}" for one in told(process, named, 2 * tries)]
    judge.error = None
    process.retry()
    if definition is Beside:
        pass_time(11 * LONG)
    if process.status != "completed" or calls["ship"] != 1:
        wrong.append(f"mended, it is {process.status}, with {dict(calls)}")
    if calls["charge"] != 1:
        wrong.append(f"mended, it has charged {calls['charge']} times")
    return wrong


def told(process: Process, named: str, tries: int) -> Iterator[str]:
    """Yield what is wrong while the condition raises."""
    found = [
        *process.incidents,
        *(i for one in process.children for i in one.incidents),
    ]
    if process.status != "failed" or not any(one.startswith(named) for one in found):
        yield f"it is {process.status} and tells {found}"
    if calls["charge"] != 1 or calls["refund"]:
        yield f"it has charged {calls['charge']} times, refunded {calls['refund']}"
    if calls["condition"] != tries:
        yield f"the condition was tried {calls['condition']} times, and not {tries}"


@pytest.mark.parametrize(
    "error",
    [ValueError, Permanent, NoCase, InvalidMessage, StopIteration, SystemExit],
)
def test_the_decision_alone_is_tried_again_fails_and_is_retried(
    error: type[BaseException],
) -> None:
    stories = {one.__name__: story(one, error) for one in BY_THEMSELVES}

    assert {name: wrong for name, wrong in stories.items() if wrong} == {}
    assert violations() == []


# Events and answers


def test_an_event_is_taken_again_and_an_answer_refused_until_the_condition_holds() -> (
    None
):
    rung, asked = started(AfterEvent), started(AfterAnswer)
    calls.clear()
    judge.error = ValueError
    rung.send(Rung())
    pass_time(LONG)
    said = "ValueError: bad: out of a condition"
    assert (rung.status, rung.incidents) == ("failed", [said])
    rung.retry()
    pass_time(LONG)
    assert (rung.status, rung.incidents) == ("failed", [said])
    refused = "cannot go on from verdict with this: bad: out of a condition"
    with pytest.raises(OperationRefused, match=refused):
        asked.answer("verdict", Answer.YES)
    assert asked.open_steps == ["verdict"]

    judge.error = None
    rung.retry()
    asked.answer("verdict", Answer.YES)
    assert (rung.status, asked.status) == ("completed", "completed")
    assert (calls["charge"], calls["ship"]) == (0, 2)


# What people and other steps do meanwhile


def undecided(
    definition: type[Workflow], error: type[Exception] = ValueError
) -> Process:
    """Return a process whose step has returned once, and whose condition raises."""
    calls.clear()
    judge.error = error
    process = started(definition)
    assert calls["charge"] == 1
    return process


@pytest.mark.parametrize("error", [ValueError, Permanent])
def test_what_the_step_has_done_is_undone_when_people_cancel(
    error: type[Exception],
) -> None:
    process = undecided(Undone, error)
    process.cancel()

    assert (process.status, process.incidents) == ("cancelled", [])
    assert (calls["charge"], calls["refund"]) == (1, 1)
    assert process.path == ["charge", "undo charge"]


def test_the_step_that_declines_beside_has_it_undone() -> None:
    process = undecided(Declined)
    pass_time(LONG)
    process.answer("verdict", Answer.NO)

    assert (process.status, process.incidents) == ("cancelled", [])
    assert (calls["charge"], calls["refund"]) == (1, 1)


def test_a_result_that_people_give_replaces_it() -> None:
    process = undecided(Routed)
    pass_time(LONG)
    judge.error = None
    run = process.instance.step_runs.get(node="charge")
    skipped(process.instance, "charge", {"number": 2})

    assert run.result == {"number": 1}
    run_due_work()
    assert (process.status, process.result_of("charge")) == ("completed", Receipt(2))
    assert calls["charge"] == 1


def test_a_branch_that_failed_fast_comes_back_with_its_result() -> None:
    process = undecided(Fast)
    judge.error = None
    process.answer("verdict", Answer.NO)
    assert "charge" not in process.open_steps
    assert process.status == "failed"
    no.clear()
    process.retry()

    assert (process.status, calls["charge"], calls["ship"]) == ("completed", 1, 1)


def test_a_result_no_case_fits_is_the_failure_of_its_step() -> None:
    """A step that may run again is called again by a retry; one that must not only decides again."""
    for definition, most in ((Unfit, 2), (UnfitOnce, 1)):
        calls.clear()
        judge.error = None
        process = started(definition)
        assert process.status == "failed"
        assert process.incidents[0].startswith("NoCase: ")
        process.retry()
        assert (process.status, calls["charge"]) == ("failed", most)


@pytest.mark.parametrize("definition", [Idempotent, Abroad, Mapped])
def test_an_error_that_looks_like_the_database_is_one_of_the_condition(
    definition: type[Workflow],
) -> None:
    process = undecided(definition, OperationalError)
    pass_time(LONG)

    assert process.status == "failed"
    assert process.incidents == ["OperationalError: bad: out of a condition"]
    judge.error = None
    process.retry()
    assert (process.status, calls["charge"]) == ("completed", 1)


@pytest.mark.usefixtures("unhurried")
def test_results_that_share_a_commit_are_stored_also_where_the_last_one_decides() -> (
    None
):
    calls.clear()
    judge.error = ValueError
    with suppress_all_wakes():
        start_process(MappedQuickly)
    while drain(held=SharedClaims()):
        pass
    assert (calls["charge"], calls["condition"]) == (1, 1)
    judge.error = None
    process = found(MappedQuickly)
    pass_time(LONG)

    assert (process.status, calls["charge"], calls["ship"]) == ("completed", 1, 1)
