"""Each pattern of the language, run by real workers all at once, and its details one by one."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from orchestrator.definition import Workflow
from orchestrator.engine import operations
from orchestrator.exceptions import OperationRefused
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
from tests.services.asking import asked
from tests.services.patience import wait_for
from tests.services.sizes import FULL

__all__ = ["flows", "press", "start"]

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("flows"),
]

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
    return {
        name: found.get(name)
        for name, value in wanted.items()
        if found.get(name) != value
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("workers", [1, 2, 4] if FULL else [2])
def test_workers_carry_out_all_patterns_at_once(start: Start, workers: int) -> None:
    processes = [launch(case.definition, *case.given) for case in CASES]
    running = start(workers)
    wait_for(
        lambda: not ProcessInstance.objects.live().exists(), 20, lambda: said(running)
    )

    for process, case in zip(processes, CASES, strict=True):
        process.refresh_from_db()
        assert unlike(case, process) == {}, str(case)
        assert process.open_steps == 0
    assert not Incident.objects.open().exists()
    assert most_at_once("narrow") <= 2


# Joins


def test_a_join_runs_once_and_waits_for_nothing_that_was_not_taken() -> None:
    process = finished(p.MultiChoice, [TEXT, IMAGE, TEXT])

    assert [run.status for run in visits(process, "gather")] == [StepStatus.DONE]
    assert statuses(process)["see_nothing"] == StepStatus.NOT_TAKEN


def test_steps_start_as_soon_as_their_needs_are_done(press: str) -> None:
    process = finished(lost.Reading, 1)

    assert statuses(process) == {
        "weigh": "done",
        "hold": "ready",
    }
    process = go_on(process, press)
    process = go_on(process)
    assert process.status == Status.COMPLETED


def test_the_rest_of_a_join_that_has_enough_is_cancelled(press: str) -> None:
    process = finished(p.RestCancelled, 1)

    assert statuses(process)["slow"] == StepStatus.CANCELLED
    assert go_on(process, press).status == Status.COMPLETED
    assert visit(process, "slow").result is None


def test_the_rest_of_a_join_that_has_enough_may_run_on(press: str) -> None:
    process = finished(p.RestRuns, 1)
    assert (process.status, results(process)["first"]) == (Status.RUNNING, "joined")

    process = go_on(go_on(process, press))

    assert process.status == Status.COMPLETED
    assert len(visits(process, "first")) == 1
    assert results(process)["after_slow"] == results(process)["slow"]


def test_a_join_puts_up_with_failures_as_long_as_enough_can_still_come() -> None:
    process = finished(p.TwoThatFail, -1)

    found = statuses(process)
    assert sorted([found["careful"], found["risky"]]) == ["failed", "failed"]
    assert (process.status, process.open_steps) == (Status.FAILED, 2)
    assert complaint(process).message == "Permanent: below zero"


def test_a_join_that_lacks_branches_because_one_has_failed_is_told() -> None:
    process = finished(starving.Starving, -1)

    assert statuses(process)["risky"] == StepStatus.FAILED
    assert (process.status, statuses(process)["first"]) == ("failed", "failed")
    incident = complaint(process)
    assert (incident.step, visit(process, "first").attempt) == ("first", 1)
    assert incident.message == (
        "Permanent: the join at first needs 1 of its 2 branches, but 0 came: "
        "1 failed, and the others were not taken"
    )
    operations.retry(process.pk, request=asked())
    process = go_on(process)
    assert complaint(process).message == incident.message
    given = visit(process, "first").pk
    operations.skip(process.pk, given, "by hand", request=asked())
    assert go_on(process).status == Status.COMPLETED


@pytest.mark.parametrize(
    ("definition", "number", "message"),
    [
        (starving.Quorum, 1, "agree needs 2 of its 3 branches, but 1 came"),
        (starving.Unanimous, 13, "sign needs 3 of its 3 branches, but 2 came"),
    ],
)
def test_a_join_of_which_too_few_branches_were_taken_is_told(
    definition: type[Workflow], number: int, message: str
) -> None:
    process = finished(definition, number)
    message = f"Permanent: the join at {message}: the others were not taken"

    incident = complaint(process)
    assert (process.status, incident.message) == ("failed", message)
    assert visit(process, incident.step).attempt == 1
    operations.retry(process.pk, request=asked())
    process = go_on(process)
    assert complaint(process).message == message
    operations.resume(process.pk, process.revision, request=asked())
    process = go_on(process)
    assert complaint(process).message == message
    failed = process.step_runs.get(finished_at=None)
    operations.skip(process.pk, failed.pk, "by hand", request=asked())
    assert go_on(process).status == Status.COMPLETED


def test_a_fork_none_of_whose_conditions_holds_is_told() -> None:
    process = finished(p.ByPredicate, 1)

    assert (process.status, statuses(process)) == ("failed", {"same": "failed"})
    message = (
        "NoCase: fork(same): no case fits what same gave, and there is no otherwise"
    )
    assert complaint(process).message == message
    failed = visit(process, "same").pk
    with pytest.raises(OperationRefused, match="no case fits"):
        operations.skip(process.pk, failed, 3, request=asked())
    operations.skip(process.pk, failed, 4, request=asked())
    process = go_on(process)
    assert (process.status, results(process)["even"]) == ("completed", "even")


def test_a_question_after_such_a_join_is_not_asked() -> None:
    process = finished(starving.StarvingAsked, -1)

    run = visit(process, "verdict")
    assert (process.status, run.status) == ("failed", "failed")
    assert "the join at verdict needs 1" in complaint(process).message
    operations.decide(process.pk, run.pk, "yes", request=asked())
    assert go_on(process).status == Status.COMPLETED


def test_a_join_that_lacks_branches_leads_where_failures_do() -> None:
    for definition, given, join in (
        (starving.QuorumCaught, 1, "agree"),
        (starving.StarvingCaught, -1, "first"),
    ):
        caught = finished(definition, given)
        assert caught.status == Status.COMPLETED
        said = f"{join}: Permanent: the join at"
        assert results(caught)["explain"].startswith(said)
    undone = finished(starving.StarvingUndone, -1)

    assert undone.status == Status.CANCELLED
    assert noted() == {"taken back": 1}


@pytest.mark.usefixtures("press")
def test_a_join_that_is_given_up_is_not_starved() -> None:
    process = finished(starving.GivenUp, -1)

    assert (process.status, results(process)["last"]) == ("completed", "after -1")
    found = statuses(process)
    assert (found["risky"], found["slow"]) == ("failed", "cancelled")
    assert found["other"] == StepStatus.NOT_TAKEN


def test_a_process_is_resumed_from_before_and_after_a_join_was_starved() -> None:
    process = finished(starving.Starving, -1)
    last = process.revision
    operations.resume(process.pk, last, request=asked())
    process = go_on(process)
    assert "the join at first needs 1" in complaint(process).message

    operations.resume(process.pk, 2, request=asked())
    process = go_on(process)
    assert "the join at first needs 1" in complaint(process).message
    assert Incident.objects.open().count() == 1


def test_failing_fast_gives_up_the_other_branch(press: str) -> None:
    process = finished(p.FailFast, -1)

    found = statuses(process)
    assert (found["risky"], found["slow"]) == ("failed", "cancelled")
    assert go_on(process, press).status == Status.FAILED
    assert visit(process, "slow").result is None


# Routes and loops


def test_a_loop_has_a_visit_for_each_round() -> None:
    process = finished(p.Looping, 1)

    assert [run.visit for run in visits(process, "count_up")] == [1, 2]
    assert [run.result for run in visits(process, "look_up")] == [2, 3]


def test_a_loop_ends_at_its_bound_and_without_another_way_people_are_told() -> None:
    process = finished(p.Bounded, -5)

    assert len(visits(process, "count_up")) == 3
    assert process.status == Status.FAILED
    incident = complaint(process)
    assert incident.step == "look_up"
    assert "still not so after 3 visits" in incident.message


# Fan-out


def test_a_map_shows_how_many_of_its_elements_are_done_and_have_failed() -> None:
    process = finished(p.Tolerant, [1, -2, 3])

    [head] = process.step_runs.filter(kind=StepKind.MAP)
    assert head.progress == {"done": 2, "failed": 1, "total": 3}
    items = process.step_runs.filter(kind=StepKind.ITEM).order_by("item")
    assert [item.status for item in items] == ["done", "failed", "done"]


def test_a_map_fails_when_more_elements_do_than_it_puts_up_with() -> None:
    process = finished(p.Tolerant, [1, -2, -3, 4])

    assert process.status == Status.FAILED
    assert "is negative" in complaint(process).message
    assert "total" not in statuses(process)
    items = process.step_runs.filter(kind=StepKind.ITEM)
    assert sorted(item.status for item in items) == ["done", "done", "failed", "failed"]


def test_a_share_of_failures_is_put_up_with() -> None:
    assert finished(p.HalfTolerant, [-1, 2]).status == Status.COMPLETED
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

    assert process.status == Status.COMPLETED
    assert max(most) == 2


def test_each_result_of_a_map_is_at_the_place_of_its_element() -> None:
    process = finished(p.FanOut, [5, 3, 1])

    items = process.step_runs.filter(kind=StepKind.ITEM).order_by("item")
    assert [(item.element, item.result) for item in items] == [(5, 25), (3, 9), (1, 1)]


# Errors that are caught


def test_a_failure_that_is_caught_tells_nobody_and_gives_up_its_group(
    press: str,
) -> None:
    process = finished(p.CatchGroup, -1)

    found = statuses(process)
    assert (found["risky"], found["slow"], found["finish"]) == (
        "failed",
        "cancelled",
        "not_taken",
    )
    assert go_on(process, press).status == Status.COMPLETED
    assert not Incident.objects.exists()


def test_the_failure_of_one_element_may_end_the_map() -> None:
    process = finished(p.CatchMap, [1, -2, 3])

    found = process.step_runs.filter(node="square", kind=StepKind.ITEM)
    assert "failed" in {item.status for item in found}
    assert statuses(process)["square"] == StepStatus.FAILED
    assert results(process)["explain"].startswith("square: Permanent: -2")


def test_a_sub_process_that_fails_may_lead_elsewhere() -> None:
    process = finished(p.CatchChild, [-1])

    assert process.status == Status.COMPLETED
    assert results(process)["explain"].startswith("parity: SubprocessDeclined: ")
    assert process.children.get().status == Status.CANCELLED


# Waiting, asking, sub-processes


# Graphs from data, queues, limits, the step's own commit


def test_a_step_runs_on_its_own_queue(press: str) -> None:
    process = finished(limits.Elsewhere, 4)
    assert statuses(process) == {"press": "ready"}

    process = go_on(process, press)
    assert statuses(process) == {"press": "done", "fetch": "ready"}
    assert results(go_on(process))["fetch"] == 4


def test_what_a_transactional_step_writes_is_stored_with_its_result_or_not_at_all() -> (
    None
):
    assert finished(limits.Storing, 1).status == Status.COMPLETED
    assert noted() == {"stored": 1}

    assert finished(limits.Storing, -1).status == Status.FAILED
    assert noted() == {"stored": 1}


def test_a_process_that_goes_on_and_on_is_stopped_at_the_limit(settings: Any) -> None:
    settings.PROCESSION = {**settings.PROCESSION, "TRANSITIONS_LIMIT": 3}

    process = finished(p.FanOut, list(range(10)))

    assert process.status == Status.FAILED
    assert "has made 3 transitions" in Incident.objects.open()[0].message
