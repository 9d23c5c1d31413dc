"""Each pattern of the language, run by real workers all at once, and its details one by one."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from orchestrator.definition import Workflow
from orchestrator.engine.operations import decide, resume, retry, skip
from orchestrator.models import (
    Incident,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.signals import committed
from tests.apps.patterns import limits, lost, starving
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import (
    complaint,
    finished,
    go_on,
    launch,
    results,
    statuses,
    visit,
    visits,
)
from tests.apps.patterns.fixtures import Start, flows, press, said, start
from tests.apps.patterns.ledger import most_at_once, noted
from tests.services.cases import cases
from tests.services.doing import refused
from tests.services.operated import operated, skipped
from tests.services.patience import wait_for
from tests.services.sizes import FULL

__all__ = ["flows", "press", "start"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("flows")]

TEXT, IMAGE, AUDIO = p.Medium.TEXT, p.Medium.IMAGE, p.Medium.AUDIO


@dataclass
class Case:
    """A workflow with an input, and the results that its steps must have then; None for a branch not taken."""

    definition: type[Workflow]
    given: tuple[Any, ...]
    results: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.definition.__name__}{self.given}"


CASES = (
    Case(p.Chain, (1,), {"add_one": 2, "double": 4, "tell": "it is 4"}),
    Case(p.Parallel, (1,), {"together": [4, -2]}),
    Case(p.Needing, (1,), {"together": [4, -2], "sum_up": 4}),
    Case(p.MultiChoice, ([TEXT, IMAGE],), {"gather": ["read", "seen"], "see_nothing": None}),
    Case(p.MultiChoice, ([IMAGE, AUDIO],), {"gather": ["seen"], "read_text": None}),
    Case(p.MultiChoice, ([],), {"gather": ["nothing"], "read_text": None, "see_image": None}),
    Case(p.ByPredicate, (12,), {"all_in_all": "big even"}),
    Case(p.ByPredicate, (13,), {"all_in_all": "big None", "even": None}),
    Case(starving.Quorum, (13,), {"agree": "plain, big, None", "even": None}),
    Case(starving.Unanimous, (12,), {"sign": "plain, big, even"}),
    Case(starving.QuorumBeside, (1,), {"close": "closed with None", "agree": None}),
    Case(starving.QuorumRepeated, (12,), {"last_round": 3}),
    Case(p.RouteByValue, (p.Priority.LOW,), {"reply": "replied", "escalate": None}),
    Case(p.RouteByValue, (p.Priority.URGENT,), {"escalate": "escalated", "reply": None}),
    Case(p.RouteByPriority, (12,), {"big": "big", "even": None, "plain": None}),
    Case(p.RouteByPriority, (2,), {"even": "even", "big": None, "plain": None}),
    Case(p.RouteByPriority, (1,), {"plain": "plain", "big": None, "even": None}),
    Case(p.FanOut, ([],), {"total": 0}),
    Case(p.FanOut, ([3],), {"total": 9}),
    Case(p.FanOut, (list(range(20)),), {"total": 2470}),
    Case(p.Windowed, (list(range(7)),), {"total": 91}),
    Case(p.Tolerant, ([1, -2, 3],), {"total": 10}),
    Case(p.HalfTolerant, ([1, -2, -3, 4],), {"total": 17}),
    Case(p.Looping, (1,), {"look_up": 3, "stop": "enough at 3", "give_up": None}),
    Case(p.Looping, (-5,), {"look_up": -2, "give_up": "gave up at -2", "stop": None}),
    Case(p.AnyOf, (1,), {"first": "joined"}),
    Case(p.AnyOf, (-1,), {"first": "joined"}),
    Case(p.TwoOfThree, (1,), {"two": "joined"}),
    Case(p.TwoOfThree, (-1,), {"two": "joined"}),
    Case(p.RestCancelled, (1,), {"first": "joined"}),
    Case(p.CatchOne, (1,), {"praise": "fine!", "explain": None}),
    Case(p.CatchOne, (-1,), {"explain": "risky: Permanent: below zero, 1", "praise": None}),
    Case(p.CatchGroup, (-1,), {"explain": "risky: Permanent: below zero, 1", "finish": None}),
    Case(p.CatchMap, ([1, 2],), {"total": 5, "explain": None}),
    Case(p.CatchMap, ([-2],), {"explain": "square: Permanent: -2 is negative, 1", "total": None}),
    Case(p.WithChild, ([1, 2],), {"parity": 5, "after_parity": "child gave 5"}),
    Case(p.Layered, (3, 3), {"s0_0": None, "s2_2": None}),
    Case(p.WideFan, (40,), {"count_all": 40}),
    Case(limits.Storing, (5,), {"store": 5}),
    Case(limits.Narrow, (list(range(12)),), {"count_narrow": 12}),
)  # fmt: skip


def unlike(case: Case, process: ProcessInstance) -> dict[str, Any]:
    """Return what is not as the case says."""
    found: dict[str, Any] = {"status": process.status, **results(process)}
    wanted = {"status": Status.COMPLETED, **case.results}
    return {name: found.get(name) for name in wanted if found.get(name) != wanted[name]}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("workers", [1, 2, 4] if FULL else [2])
def test_workers_carry_out_all_patterns_at_once(start: Start, workers: int) -> None:
    processes = [launch(case.definition, *case.given) for case in CASES]
    running = start(workers)
    live = ProcessInstance.objects.live()
    wait_for(lambda: not live.all().exists(), 20, lambda: said(running))

    for process, case in zip(processes, CASES, strict=True):
        process.refresh_from_db()
        assert unlike(case, process) == {}, str(case)
        assert process.open_steps == 0
    assert not Incident.objects.open().exists()
    assert most_at_once("narrow") <= 2


# Joins


def test_a_join_runs_once_and_waits_for_nothing_that_was_not_taken() -> None:
    process = finished(p.MultiChoice, [TEXT, IMAGE, TEXT])

    assert visit(process, "gather").status == StepStatus.DONE
    assert statuses(process)["see_nothing"] == StepStatus.NOT_TAKEN


def test_steps_start_as_soon_as_their_needs_are_done(press: str) -> None:
    process = finished(lost.Reading, 1)

    assert statuses(process) == {"weigh": "done", "hold": "ready"}
    assert go_on(go_on(process, press)).status == Status.COMPLETED


@cases(
    "definition, given, found, status",
    (p.RestCancelled, 1, {}, "completed"),
    (p.FailFast, -1, {"risky": "failed"}, "failed"),
    (p.CatchGroup, -1, {"risky": "failed", "finish": "not_taken"}, "completed"),
)
def test_what_a_join_or_a_failure_gives_up_is_cancelled_and_comes_too_late(
    definition: type[Workflow],
    given: int,
    found: dict[str, str],
    status: str,
    press: str,
) -> None:
    process = finished(definition, given)

    assert statuses(process).items() >= {**found, "slow": "cancelled"}.items()
    assert go_on(process, press).status == status
    assert visit(process, "slow").result is None
    assert Incident.objects.exists() == (status == "failed")


def test_the_rest_of_a_join_that_has_enough_may_run_on(press: str) -> None:
    process = finished(p.RestRuns, 1)
    assert (process.status, results(process)["first"]) == (Status.RUNNING, "joined")

    assert go_on(go_on(process, press)).status == Status.COMPLETED
    assert len(visits(process, "first")) == 1
    assert results(process)["after_slow"] == results(process)["slow"]


def test_a_join_puts_up_with_failures_as_long_as_enough_can_still_come() -> None:
    process = finished(p.TwoThatFail, -1)

    found = statuses(process)
    assert (found["careful"], found["risky"]) == ("failed", "failed")
    assert (process.status, process.open_steps) == (Status.FAILED, 2)
    assert complaint(process).message == "Permanent: below zero"


@cases(
    "definition, number, message",
    (starving.Quorum, 1, "agree needs 2 of its 3 branches, but 1 came: "),
    (starving.Unanimous, 13, "sign needs 3 of its 3 branches, but 2 came: "),
    (starving.Starving, -1, "first needs 1 of its 2 branches, but 0 came: 1 failed, and "),
)  # fmt: skip
def test_a_join_that_lacks_branches_is_told_until_it_is_skipped(
    definition: type[Workflow], number: int, message: str
) -> None:
    process = finished(definition, number)
    said = f"Permanent: the join at {message}the others were not taken"
    join = message.partition(" ")[0]

    def told() -> tuple[str, str, str, int]:
        incident, run = complaint(process), visits(process, join)[-1]
        return process.status, incident.step, incident.message, run.attempt

    assert told() == ("failed", join, said, 1)
    acts: list[Any] = [(retry,), (resume, process.revision), (resume, 2)]
    for act, *given in acts:
        operated(act, process, *given)
        assert told() == ("failed", join, said, 1)
    assert skipped(process, join, "by hand").status == Status.COMPLETED


def test_a_fork_none_of_whose_conditions_holds_is_told() -> None:
    process = finished(p.ByPredicate, 1)

    assert (process.status, statuses(process)) == ("failed", {"same": "failed"})
    said = "NoCase: fork(same): no case fits what same gave, and there is no otherwise"
    assert complaint(process).message == said
    same = visit(process, "same").pk
    refused("no case fits", skip, process, same, 3)
    skipped(process, "same", 4)
    assert (process.status, results(process)["even"]) == ("completed", "even")


def test_a_question_after_such_a_join_is_not_asked() -> None:
    process = finished(starving.StarvingAsked, -1)

    run = visit(process, "verdict")
    assert (process.status, run.status) == ("failed", "failed")
    assert "the join at verdict needs 1" in complaint(process).message
    assert operated(decide, process, run.pk, "yes").status == Status.COMPLETED


def test_a_join_that_lacks_branches_leads_where_failures_do() -> None:
    for definition, given, join in (
        (starving.QuorumCaught, 1, "agree"),
        (starving.StarvingCaught, -1, "first"),
    ):
        caught = finished(definition, given)
        assert caught.status == Status.COMPLETED
        said = f"{join}: Permanent: the join at"
        assert results(caught)["explain"].startswith(said)

    assert finished(starving.StarvingUndone, -1).status == Status.CANCELLED
    assert noted() == {"taken back": 1}


@pytest.mark.usefixtures("press")
def test_a_join_that_is_given_up_is_not_starved() -> None:
    process = finished(starving.GivenUp, -1)

    assert (process.status, results(process)["last"]) == ("completed", "after -1")
    found = {"risky": "failed", "slow": "cancelled", "other": "not_taken"}
    assert statuses(process).items() >= found.items()


# Routes and loops


def test_a_loop_ends_at_its_bound_and_without_another_way_people_are_told() -> None:
    process = finished(p.Bounded, -5)

    assert (process.status, len(visits(process, "count_up"))) == (Status.FAILED, 3)
    assert complaint(process).step == "look_up"
    assert "still not so after 3 visits" in complaint(process).message


# Fan-out


def items_of(process: ProcessInstance) -> list[StepRun]:
    return list(process.step_runs.filter(kind=StepKind.ITEM).order_by("item"))


def test_a_map_fails_when_more_elements_do_than_it_puts_up_with() -> None:
    process = finished(p.Tolerant, [1, -2, -3, 4])

    assert process.status == Status.FAILED
    assert "is negative" in complaint(process).message
    assert "total" not in statuses(process)
    found = [item.status for item in items_of(process)]
    assert found == ["done", "failed", "failed", "waiting"]
    assert finished(p.HalfTolerant, [-1, -2, 3]).status == Status.FAILED


@pytest.mark.django_db(transaction=True)
def test_no_more_elements_begin_than_the_window_has_room_for() -> None:
    most: list[int] = []

    def look(**signal: Any) -> None:
        items = StepRun.objects.filter(kind=StepKind.ITEM, finished_at=None)
        most.append(items.exclude(status=StepStatus.WAITING).count())

    committed.connect(look)
    try:
        process = finished(p.Windowed, list(range(5)))
    finally:
        committed.disconnect(look)

    assert (process.status, max(most)) == (Status.COMPLETED, 2)


def test_each_result_of_a_map_is_at_the_place_of_its_element() -> None:
    items = items_of(finished(p.FanOut, [5, 3, 1]))

    assert [(item.element, item.result) for item in items] == [(5, 25), (3, 9), (1, 1)]


# Errors that are caught


def test_the_failure_of_one_element_may_end_the_map() -> None:
    process = finished(p.CatchMap, [1, -2, 3])

    assert "failed" in {item.status for item in items_of(process)}
    assert statuses(process)["square"] == StepStatus.FAILED
    assert results(process)["explain"].startswith("square: Permanent: -2")


# Queues, and the step's own commit


def test_a_step_runs_on_its_own_queue(press: str) -> None:
    process = finished(limits.Elsewhere, 4)
    assert statuses(process) == {"press": "ready"}

    go_on(process, press)
    assert statuses(process) == {"press": "done", "fetch": "ready"}
    assert results(go_on(process))["fetch"] == 4


@pytest.mark.parametrize(("number", "status"), [(1, "completed"), (-1, "failed")])
def test_what_a_transactional_step_writes_is_stored_with_its_result_or_not_at_all(
    number: int, status: str
) -> None:
    assert finished(limits.Storing, number).status == status
    assert noted() == ({"stored": 1} if number == 1 else {})
