"""A failed sub-process reaches its parent like a step's failure: a rule takes it, or both wait for one Retry."""

from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from pytest_django import Settings

from orchestrator import Permanent
from orchestrator.definition import Workflow
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change.workflows.child_failure import failure_of
from orchestrator.engine.invariants import violations
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import (
    cancel,
    pause,
    redo,
    refusals,
    restart,
    resume,
    retry,
    skip,
    unpause,
)
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.steps.runner import CLAIMED
from orchestrator.engine.work import leases, step_failures
from orchestrator.exceptions import SubprocessFailed
from orchestrator.models import Incident, Lost, ProcessInstance, StepRun
from orchestrator.testing import pass_time
from tests.apps.compensation import journal
from tests.apps.compensation.journal import done, faults, undone
from tests.apps.patterns.desk import (
    complaint,
    finished,
    go_on,
    launch,
    results,
    statuses,
    visit,
)
from tests.apps.process_managers.together import raised, together
from tests.apps.subprocess_failures import processes as p
from tests.services.asking import asked
from tests.services.cases import cases
from tests.services.client import Read
from tests.services.doing import refused
from tests.services.operated import (
    at_once,
    decided,
    knowing,
    mended,
    one_piece,
    operated,
    outcome,
    press,
    skipped,
    troubled,
)
from tests.services.telling import gathered_items

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("errands")]

BROKEN = ConnectionError("no line")
NO = Permanent("sold out")

known = knowing(*p.WORKFLOWS)


@pytest.fixture
def errands() -> None:
    """Begin with nothing done and nothing wrong."""
    journal.forget()


def broken(definition: type[Workflow], *given: Any) -> ProcessInstance:
    """Start a process whose errand meets an unexpected error, and run it as far as it goes."""
    return troubled(definition, *given, buy=BROKEN)


def family(process: ProcessInstance) -> list[ProcessInstance]:
    """Return a process, its last sub-process, and so on, as they stand now."""
    found = [ProcessInstance.objects.get(pk=process.pk)]
    while part := found[-1].children.order_by("pk").last():
        found.append(part)
    return found


def standing(process: ProcessInstance) -> list[str]:
    """Return the statuses of a process, its last sub-process, and so on."""
    return [str(part.status) for part in family(process)]


def quietly(process: ProcessInstance) -> list[str]:
    """Return the same; nobody must be told of anything."""
    assert not Incident.objects.open().exists()
    return standing(process)


def in_town(process: ProcessInstance, town: str) -> ProcessInstance:
    """Return the last errand of a process in a town."""
    part: ProcessInstance = process.children.filter(data__town=town).latest("pk")
    return part


def child_of(process: ProcessInstance) -> ProcessInstance:
    return family(process)[1]


def told(process: ProcessInstance) -> int:
    """Return how many incidents are open about a process."""
    return process.incidents.open().count()


def until(process: ProcessInstance, status: str) -> ProcessInstance:
    """Run one piece of work after the other until the sub-process has come so far; return that."""
    while standing(process)[1:2] != [status]:
        one_piece()
    return child_of(process)


# Nothing takes it


def test_without_a_rule_both_stand_failed_and_the_child_stays_open() -> None:
    process = broken(p.Plain)
    child = child_of(process)

    assert standing(process) == ["failed", "failed"]
    assert (child.finished_at, statuses(child)["buy"]) == (None, "failed")
    errand = visit(process, "errand")
    assert (errand.status, errand.child) == ("failed", child)
    said = f"SubprocessFailed: the sub-process errand {child.pk} failed at buy: ConnectionError: no line"
    assert (complaint(process).message, complaint(process).step) == (said, "errand")
    assert complaint(child).message == "ConnectionError: no line"
    error = failure_of(child)
    assert isinstance(error, SubprocessFailed)
    facts = (error.process_id, error.step, error.error, error.text)
    assert facts == (child.pk, "buy", "ConnectionError", "no line")


@cases(
    "definitions, told_of",
    ([], [("errand", "buy"), ("plain", "errand")]),
    (["plain"], [("plain", "errand")]),
    (["errand"], [("errand", "buy")]),
)
def test_people_are_told_of_each_by_its_own_definition(
    definitions: list[str], told_of: list[tuple[str, str]], settings: Settings
) -> None:
    about = {"definitions": definitions} if definitions else {}
    settings.PROCESSION_NOTICES = {"ops": {"to": "ops@example.org", **about}}
    broken(p.Plain)

    assert [(one["definition"], one["step"]) for one in gathered_items()] == told_of


def test_page_and_incident_of_each_lead_to_the_other(read: Read) -> None:
    process = broken(p.Plain)
    child = child_of(process)
    link = 'href="/processes/{}/"'
    of_parent = read(f"/failures/{complaint(process).fingerprint}/")
    of_child = read(f"/failures/{complaint(child).fingerprint}/")

    assert f"/processes/{child.pk}/" in read(f"/processes/{process.pk}/")
    assert f"/processes/{process.pk}/" in read(f"/processes/{child.pk}/")
    assert f'id="incident-{complaint(process).pk}"' in of_parent
    assert link.format(child.pk) in of_parent
    assert link.format(process.pk) in of_child


def test_a_retry_before_the_parent_has_heard_of_it_leaves_that_waiting() -> None:
    process = launch(p.Plain)
    faults["buy"] = BROKEN
    child = until(process, "failed")
    errand = visit(process, "errand")
    assert (errand.status, errand.wake_at is not None) == ("waiting", True)
    assert violations() == []
    mended(child)

    assert go_on(process).status == "completed"
    assert not process.incidents.exists()


# A rule takes it


def test_a_catch_takes_it_and_closes_the_child(operator: User) -> None:
    process = broken(p.Caught)
    child = child_of(process)

    assert quietly(process) == ["completed", "cancelled"]
    said = "errand, SubprocessFailed, 1: buy: ConnectionError: no line"
    assert results(process)["explain"] == said
    refused("Its parent went on", retry, child)
    assert refusals([child], operator)[child.pk]["retry"] == "Its parent went on"


@pytest.mark.parametrize("undoing_fails", [False, True])
def test_what_the_child_did_is_undone_when_a_rule_takes_it(undoing_fails: bool) -> None:
    if undoing_fails:
        faults["come_back"] = Permanent("no train")
    process = broken(p.CaughtBack)
    if undoing_fails:
        assert standing(process) == ["completed", "failed"]
        mended(child_of(process))

    assert standing(process) == ["completed", "cancelled"]
    assert undone == ["back from Nara"]


@cases("error, way", (NO, "explain"), (BROKEN, "other"))
def test_a_catch_may_take_only_what_was_declined(error: Exception, way: str) -> None:
    journal.forget()
    process = troubled(p.OnlyDeclined, buy=error)

    assert standing(process) == ["completed", "cancelled"]
    assert (list(results(process)), undone) == ([way], ["back from Nara"])
    process = finished(p.AsPermanent)
    if error is BROKEN:
        assert standing(process) == ["failed", "failed"]
    else:
        said = "errand, SubprocessDeclined, 1: buy: Permanent: sold out"
        assert results(process)["explain"] == said


@cases(
    "definition, back, deep",
    (p.Booked, ["no room in Nara"], 2),
    (p.BookedExcursion, ["back from Nara", "no room in Nara"], 2),
    (p.TopBooked, ["no room in Nara"], 3),
)
def test_a_parent_is_undone_when_its_child_declines_and_not_when_it_is_broken(
    definition: type[Workflow], back: list[str], deep: int
) -> None:
    journal.forget()
    process = broken(definition)
    assert (standing(process), undone) == (["failed"] * deep, [])
    operated(cancel, process)
    journal.forget()
    process = troubled(definition, buy=NO)

    assert (standing(process), undone) == (["cancelled"] * deep, back)
    assert not Incident.objects.open().exists()
    said = process.incidents.get().message
    assert said.startswith("SubprocessDeclined: the sub-process ")
    assert said.endswith("declined at buy: Permanent: sold out")


def test_a_child_that_has_undone_itself_is_followed_by_another_when_asked() -> None:
    process = troubled(p.Outing, buy=NO)
    first = child_of(process)
    assert (standing(process), undone) == (["failed", "cancelled"], ["back from Nara"])
    assert "declined at buy" in complaint(process).message

    assert mended(process).status == "completed"
    assert child_of(process) != first


def test_a_join_that_can_do_without_it_closes_it() -> None:
    process = broken(p.Either)

    assert standing(process) == ["completed", "cancelled"]
    assert results(process)["either"] == "rested"


def test_failing_fast_gives_the_others_up_until_either_is_retried() -> None:
    process = broken(p.Hasty)
    assert standing(process) == ["failed", "failed"]
    assert statuses(process)["sure"] == "cancelled"
    mended(child_of(process))
    assert statuses(process)["sure"] == "waiting"

    assert decided(process).status == "completed"


# Maps


def test_a_map_tolerates_it_and_its_window_moves_on() -> None:
    process = troubled(p.Round, "Nara", 5, **{"buy in Nara": BROKEN})

    assert (process.status, len(results(process)["collect"])) == ("completed", 4)
    assert in_town(process, "Nara").status == "cancelled"
    assert not Incident.objects.open().exists()


@pytest.mark.parametrize("parent", [True, False])
def test_one_too_many_stands_failed_until_either_is_retried(parent: bool) -> None:
    faults["buy in Kobe"] = faults["buy in Osaka"] = BROKEN
    process = finished(p.Round, "Nara", 5)
    assert process.status == "failed"
    last = in_town(process, "Osaka")
    assert (in_town(process, "Kobe").status, last.status) == ("cancelled", "failed")
    assert str(last.pk) in complaint(process).message
    mended(process if parent else last)

    assert go_on(process).status == "completed"
    assert len(results(process)["collect"]) == 4


def test_a_retry_of_one_element_leaves_the_others_failed() -> None:
    process = broken(p.StrictRound, "Nara", 3)
    assert [told(process), Incident.objects.open().count()] == [3, 6]
    mended(in_town(process, "Nara"))
    assert (go_on(process).status, told(process)) == ("failed", 2)
    assert in_town(process, "Nara").status == "completed"

    assert operated(retry, process).status == "completed"
    assert process.children.count() == 3


def test_what_the_failure_of_several_elements_cancelled_comes_back_once() -> None:
    process = mended(broken(p.HastyRound, "Nara", 3))
    open_runs = process.step_runs.filter(finished_at=None).exclude(kind="join")
    assert open_runs.get().node == "night"
    pass_time(days=2)

    assert outcome(process, "wake") == ("completed", 3)


def test_a_failure_in_a_map_that_is_caught_closes_all_of_them() -> None:
    process = troubled(p.CaughtRound, "Nara", 5, **{"buy in Osaka": BROKEN})

    assert process.status == "completed"
    assert not process.children.filter(finished_at=None).exists()
    assert in_town(process, "Osaka").status == "cancelled"
    assert "back from Osaka" in undone


# Three deep


@cases(
    "definition, deep, pressed",
    *((p.Plain, 2, 0), (p.Plain, 2, 1)),
    *((p.Top, 3, 0), (p.Top, 3, 1), (p.Top, 3, 2)),
)
def test_it_goes_up_level_by_level_and_a_retry_at_any_revives_all_in_one_commit(
    definition: type[Workflow], deep: int, pressed: int
) -> None:
    journal.forget()
    process = broken(definition)
    operated(retry, family(process)[pressed])
    assert standing(process) == ["failed"] * deep
    told = [complaint(one).message for one in family(process)]
    assert all(inner in outer for outer, inner in pairwise(told))
    faults.clear()
    retry(family(process)[pressed].pk, request=asked())

    assert quietly(process) == [*["waiting"] * (deep - 1), "running"]
    assert process.step_runs.get(kind="run").status == "waiting"
    assert violations() == []
    assert go_on(process).status == "completed"
    assert (done.count("buy"), process.children.count()) == (1, 1)
    assert done.count("report") == (definition is p.Plain)


def test_a_catch_at_the_top_or_its_cancellation_closes_all_below() -> None:
    caught, process = broken(p.TopCaught), broken(p.Top)
    operated(cancel, process)

    assert quietly(caught) == ["completed", "cancelled", "cancelled"]
    assert standing(process) == ["cancelled", "cancelled", "cancelled"]


# What people do


def test_cancelling_the_failed_child_fails_the_parents_step_for_that() -> None:
    process = broken(p.Plain)
    first = child_of(process)
    operated(cancel, first)
    assert standing(process) == ["failed", "cancelled"]
    assert "ChildCancelled" in complaint(process).message

    assert mended(process).status == "completed"
    assert child_of(process) != first


def test_skipping_the_failed_step_of_the_child_lets_the_parent_go_on() -> None:
    process = broken(p.Plain)
    skipped(child_of(process), "buy", "a gift")

    assert quietly(process) == ["completed", "completed"]
    assert results(process)["report"] == "a gift, reported"


def test_skipping_the_step_of_the_parent_closes_the_child() -> None:
    process = skipped(broken(p.Plain), "errand", "nothing")

    assert standing(process) == ["completed", "cancelled"]
    refused("Its parent went on", retry, child_of(process))


@pytest.mark.parametrize("level", [0, 1])
def test_resuming_either_tries_the_failed_child_again(level: int) -> None:
    process = broken(p.Plain)
    faults.clear()
    operated(resume, family(process)[level], 2)

    assert quietly(process) == ["completed", "completed"]
    assert process.children.count() == 1


def test_restarting_the_failed_child_lets_all_above_wait_for_the_new_one() -> None:
    process = broken(p.Top)
    middle, bottom = family(process)[1:]
    faults.clear()
    restart(bottom.pk, {"town": "Uji", "errands": 1}, request=asked())
    assert standing(process)[:2] == ["waiting", "waiting"]
    assert told(process) == told(middle) == 0

    assert go_on(process).status == "completed"
    assert results(middle)["errand"] == "bought in Uji"


def test_a_sub_process_that_fails_when_it_is_redone_is_retried_too() -> None:
    process = finished(p.Hasty)
    faults["buy"] = BROKEN
    operated(redo, process, "errand")
    assert standing(process) == ["failed", "failed"]

    assert (mended(process).status, told(process)) == ("waiting", 0)
    assert child_of(process).status == "completed"


# Pauses


def test_a_paused_child_reaches_its_parent_when_it_goes_on() -> None:
    process = launch(p.Caught)
    child = until(process, "running")
    faults["buy"] = BROKEN
    pause(child.pk, True, request=asked())
    open_runs = StepRun.objects.filter(instance=child)
    open_runs.update(remaining=None, wake_at=child.started_at)
    go_on(process)
    assert standing(process) == ["waiting", "paused"]
    operated(unpause, child, True)

    assert standing(process) == ["completed", "cancelled"]


def test_a_paused_parent_hears_of_it_when_it_goes_on() -> None:
    process = launch(p.Caught)
    until(process, "running")
    faults["buy"] = BROKEN
    operated(pause, process, False)
    assert standing(process) == ["paused", "failed"]
    assert violations() == []

    assert standing(operated(unpause, process, False)) == ["completed", "cancelled"]


def test_a_failed_child_may_be_paused_and_retried_meanwhile() -> None:
    process = broken(p.Plain)
    child = child_of(process)
    operated(pause, child, True)
    assert standing(process) == ["failed", "paused"]
    assert standing(mended(process)) == ["waiting", "paused"]
    operated(unpause, child, True)

    assert standing(process) == ["completed", "completed"]


# Many at once


@pytest.mark.django_db(transaction=True)
def test_a_retry_of_both_at_the_same_moment_revives_them_once() -> None:
    for _ in range(5):
        process = broken(p.Top)
        faults.clear()
        errors = at_once(*(press(retry, one) for one in family(process)))

        assert len(errors) < 3
        assert {str(error) for error in errors} <= {"Nothing has failed"}
        assert go_on(process).status == "completed"
        assert done.count("buy") == 1
        journal.forget()


@pytest.mark.django_db(transaction=True)
def test_whatever_is_done_to_them_at_once_they_come_to_an_end() -> None:
    for action, level in (
        (cancel, 0),
        (cancel, 2),
        (retry, 1),
        (pause, 0),
        (cancel, 1),
        (retry, 0),
    ):
        process = broken(p.TopBooked)
        parts = family(process)
        faults.clear()
        retries = (press(retry, parts[-1]), press(retry, process))
        at_once(*retries, press(action, parts[level]), drain, drain)
        if go_on(process).status == "paused":
            operated(unpause, process, True)
        if process.status == "failed":
            operated(retry, process)

        assert set(standing(process)) <= {"completed", "cancelled"}
        assert violations() == []


@pytest.mark.django_db(transaction=True)
def test_elements_that_fail_at_once_are_all_heard() -> None:
    faults["buy"] = BROKEN
    process = launch(p.StrictRound, "Nara", 5)
    assert not raised(together(drain, drain, drain))
    assert (go_on(process).status, told(process)) == ("failed", 5)
    faults.clear()
    whole = (*process.children.all(), process)
    at_once(*(press(retry, part) for part in whole), drain)

    assert (go_on(process).status, done.count("collect")) == ("completed", 1)


def claimed_by_the_dead() -> StepRun:
    """Have a worker that will die claim what the parent is to hear."""
    [claimed] = step_runs.claim("default", "dead", 8, 10.0, **CLAIMED)
    assert claimed.work.node == "errand"
    run: StepRun = claimed.work
    return run


def test_a_worker_that_dies_when_it_was_to_hear_of_it_is_followed_by_another() -> None:
    process = launch(p.Caught)
    faults["buy"] = BROKEN
    until(process, "failed")
    claimed_by_the_dead()
    assert go_on(process).status == "waiting"
    leases.end_leases(["dead"])

    assert standing(go_on(process)) == ["completed", "cancelled"]
    assert done.count("explain") == 1


def test_a_worker_that_dies_when_it_was_to_hear_that_it_goes_on() -> None:
    process = broken(p.Plain)
    child = child_of(process)
    skip(child.pk, visit(child, "buy").pk, "a gift", request=asked())
    claimed_by_the_dead()
    leases.end_leases(["dead"])

    assert go_on(process).status == "completed"


def test_one_whose_end_kills_whoever_hears_of_it_is_given_up_until_a_retry() -> None:
    process = launch(p.Plain)
    until(process, "completed")
    attempts = Policy().attempts()
    for _ in range(attempts):
        run = claimed_by_the_dead()
        assert run.status == "waiting"
        work = leases.work_name(run)
        leases.end_leases(["dead"], running={work: Lost.DIED})

    assert standing(go_on(process)) == ["failed", "completed"]
    said = f"died or was killed in each of {attempts} attempts"
    assert said in complaint(process).message
    assert operated(retry, process).status == "completed"


def test_an_end_that_was_claimed_and_not_looked_at_is_heard_however_often() -> None:
    process = launch(p.Plain)
    until(process, "completed")
    for _ in range(10):
        claimed_by_the_dead()
        leases.end_leases(["dead"])

    assert go_on(process).status == "completed"
    causes = process.checkpoints.order_by("revision").values_list("cause", flat=True)
    assert [cause.split(":")[0] for cause in causes] == ["start", *["step"] * 3]


# What it costs


@cases(
    "planted, found",
    ({"status": "waiting", "error": ""}, "was not told"),
    ({"status": "failed"}, "stands failed, but"),
)
def test_the_invariants_find_a_step_that_stands_otherwise_than_its_child(
    planted: dict[str, str], found: str
) -> None:
    process = broken(p.Plain)
    with transaction.atomic():
        if planted["status"] == "failed":
            again = {"status": "ready", "wake_at": process.started_at}
            child_of(process).step_runs.filter(node="buy").update(**again)
        process.step_runs.filter(node="errand").update(**planted)
        told = [line for line in violations() if line.startswith("sub_processes")]
        transaction.set_rollback(True)

    assert [found in line for line in told] == [True]


@pytest.mark.parametrize("definition", [p.Plain, p.OnlyDeclined])
def test_one_that_is_restarted_while_a_worker_sees_its_failure_is_waited_for_anew(
    definition: type[Workflow], monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = step_failures._settle_somehow
    replaced: list[UUID] = []

    def settle_late(run: StepRun, error: Exception, *others: Any) -> None:
        if run.child_id is not None and not replaced:
            faults.clear()
            replaced.append(run.child_id)
            again = {"town": "Kobe", "errands": 1}
            restart(run.child_id, again, request=asked())
        settle(run, error, *others)

    monkeypatch.setattr(step_failures, "_settle_somehow", settle_late)
    process = broken(definition)

    assert replaced
    assert standing(process) == ["completed", "completed"]
    assert not process.incidents.exists()
    assert statuses(process).get("other") != "done"
