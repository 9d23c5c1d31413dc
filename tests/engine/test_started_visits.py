"""What a settled visit starts: joins count their branches, maps their elements, and errors say whose they are."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from orchestrator import Permanent, start_process
from orchestrator.definition import (
    Workflow,
    ask,
    case,
    catch,
    each,
    join,
    route,
    start,
    step,
    then,
)
from orchestrator.engine.sql import connection as sql_connection
from orchestrator.exceptions import NoCase
from orchestrator.testing import started
from tests.both.test_joins_of_one_change import rung
from tests.services.operated import knowing

__all__ = ["rung"]

pytestmark = pytest.mark.django_db

calls = Counter[str]()
wrong: set[str] = set()
"""What does not work now."""


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    calls.clear()
    wrong.clear()


class Answer(StrEnum):
    YES = "yes"
    NO = "no"


class Broken(Permanent):
    """What a step says that does not work."""


phone, mail, fax, last = (
    ask(name, Answer) for name in ("phone", "mail", "fax", "last")
)


def end() -> str:
    return "the end"


def call() -> None: ...


def write() -> None: ...


def forget() -> None: ...


def ignore() -> None: ...


def agrees(answer: Answer) -> bool:
    return answer == Answer.YES


class AllOf(Workflow):
    """Waits for three answers."""

    flow = (start(phone, mail, fax), join(phone, mail, fax, into=end))


class FirstOf(Workflow):
    """Asks another question after the first answer."""

    flow = (
        start(phone, mail, fax),
        join(phone, mail, fax, into=last, wait_for="any"),
    )


class Wanted(Workflow):
    """Two questions, whose steps come together where the answers want them."""

    flow = (
        start(phone, mail),
        route(phone, case(agrees, to=call), otherwise=forget),
        route(mail, case(agrees, to=write), otherwise=ignore),
        join(call, write, into=end, wait_for="any"),
    )


def breaks() -> None:
    raise Broken("it does not work")


class GivenUp(Workflow):
    """The failure that is caught makes the join of the cancelled branch, and passes it over."""

    flow = (
        start(breaks, phone),
        catch(breaks, phone, error=Broken, to=last),
        join(breaks, phone, into=end),
    )


def none() -> list[int]:
    return []


def one() -> list[int]:
    return [7]


def double(item: int) -> int:
    return 2 * item


def total(double: list[int]) -> int:
    return sum(double)


class OfNone(Workflow):
    """A map without elements."""

    flow = (each(none, over="", do=double, into=total),)


class OfOne(Workflow):
    """A map of one element."""

    flow = (each(one, over="", do=double, into=total),)


class Overtaken(Workflow):
    """A map without elements is done before anybody answers; the first branch is enough."""

    flow = (
        then(none, phone),
        each(none, over="", do=double, into=end),
        join(double, phone, into=end, wait_for="any", rest="cancel"),
    )


@dataclass(frozen=True)
class Box:
    number: int = 2

    @property
    def parts(self) -> list[Any]:
        return [object()] if "parts" in wrong else [self.number]


def fill() -> Box:
    calls["fill"] += 1
    return Box()


class Unpacked(Workflow):
    """The list of a map's elements is a property."""

    flow = (then(fill, end), each(fill, over="parts", do=double, into=total))


def is_full(box: Box) -> bool:
    if "condition" in wrong:
        raise NoCase("it is neither full nor empty")
    return True


class Checked(Workflow):
    """A condition stands behind a step without another attempt."""

    flow = (
        start(step(fill, retries=0)),
        route(fill, case(is_full, to=end), otherwise=forget),
    )


known = knowing(
    AllOf, FirstOf, Wanted, GivenUp, OfNone, OfOne, Overtaken, Unpacked, Checked
)


# Joins


def test_a_join_counts_the_branches_that_come_one_by_one_and_starts_after_the_last() -> (
    None
):
    process = started(AllOf)
    process.answer("phone", "yes")
    process.answer("mail", "yes")

    waiting = process.instance.step_runs.get(node="end")
    assert (waiting.kind, waiting.arrived, waiting.taken) == ("join", 2, 2)
    assert waiting.progress is None
    process.answer("fax", "yes")
    assert (process.status, process.result) == ("completed", "the end")


def test_a_branch_that_comes_to_a_join_whose_step_is_open_is_counted_and_starts_nothing() -> (
    None
):
    process = started(FirstOf)
    process.answer("phone", "yes")
    process.answer("mail", "yes")

    assert process.open_steps == ["fax", "last"]
    assert process.instance.step_runs.get(node="last").arrived == 2
    process.answer("last", "yes")
    process.answer("fax", "yes")
    assert process.status == "completed"
    assert process.instance.step_runs.filter(node="last").count() == 1


def test_a_join_whose_branches_are_all_passed_over_has_not_failed() -> None:
    process = started(Wanted)
    process.answer("phone", "no")
    process.answer("mail", "no")

    assert (process.status, process.incidents) == ("completed", [])
    assert process.instance.step_runs.get(node="end").status == "not_taken"


def test_a_process_is_open_beside_a_join_that_one_change_makes_and_passes_over() -> (
    None
):
    process = started(GivenUp)

    assert (process.status, process.open_steps) == ("waiting", ["last"])
    assert process.instance.open_steps == 1
    process.answer("last", "yes")
    assert process.status == "completed"


def test_the_transaction_that_starts_many_steps_may_stand_idle_for_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed: list[float] = []
    monkeypatch.setattr(sql_connection, "FEW_ROWS", 2)
    monkeypatch.setattr(sql_connection, "allow_idle", allowed.append)
    start_process(AllOf)

    assert allowed == [10]


# Maps


def test_the_step_behind_a_map_without_elements_starts_at_once() -> None:
    process = started(OfNone)

    assert (process.status, process.result) == ("completed", 0)


def test_a_process_goes_on_beside_a_question_that_one_change_begins_and_cancels() -> (
    None
):
    process = started(Overtaken)

    assert (process.status, process.result) == ("completed", "the end")
    assert process.instance.step_runs.get(node="phone").status == "cancelled"


def test_nobody_is_woken_for_the_first_element_that_the_worker_goes_on_with(
    rung: list[str],
) -> None:
    process = started(OfOne)

    assert process.result == 14
    assert rung == ["default"]  # for the start


def test_a_step_whose_elements_cannot_be_stored_has_failed_and_is_called_again() -> (
    None
):
    wrong.add("parts")
    process = started(Unpacked)
    assert (process.status, calls["fill"]) == ("failed", 1)
    wrong.clear()
    process.retry()

    assert (process.status, calls["fill"]) == ("completed", 2)


# Conditions


def test_a_no_case_of_the_applications_own_condition_calls_the_step_no_second_time() -> (
    None
):
    wrong.add("condition")
    process = started(Checked)
    assert process.status == "failed"
    wrong.clear()
    process.retry()

    assert (process.status, calls["fill"]) == ("completed", 1)
