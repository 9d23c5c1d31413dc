"""A failed sub-process reaches its parent like a step's failure: a rule takes it, or both wait for one Retry."""

from collections.abc import Iterator
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from pytest_django import Settings

from orchestrator import Permanent
from orchestrator.definition import Workflow
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change.child_failure import failure_of
from orchestrator.engine.claims import leases
from orchestrator.engine.drain import drain
from orchestrator.engine.failures import of_step
from orchestrator.engine.invariants import violations
from orchestrator.engine.operations import (
    cancel,
    decide,
    pause,
    redo,
    refusals,
    restart,
    resume,
    retry,
    skip,
    unpause,
)
from orchestrator.engine.steps.running import CLAIMED
from orchestrator.engine.storage.tables import step_runs
from orchestrator.exceptions import OperationRefused, SubprocessFailed
from orchestrator.models import Incident, Lost, ProcessInstance, StepRun
from orchestrator.testing import registered
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
from tests.services.telling import gathered_items

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("errands")]

BROKEN = ConnectionError("no line")
NO = Permanent("sold out")


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    """Let the running code have these workflows: also while the invariants are asked for after each test."""
    with registered(*p.WORKFLOWS):
        yield


@pytest.fixture
def errands(known: None) -> None:
    """Begin with nothing done and nothing wrong."""
    journal.forget()


def broken(definition: type[Workflow], *given: Any) -> ProcessInstance:
    """Start a process whose errand meets an unexpected error, and run it as far as it goes."""
    faults["buy"] = BROKEN
    return finished(definition, *given)


def family(process: ProcessInstance) -> list[ProcessInstance]:
    """Return a process, its last sub-process, and so on, as they stand now."""
    found = [ProcessInstance.objects.get(pk=process.pk)]
    while part := found[-1].children.order_by("pk").last():
        found.append(part)
    return found


def standing(process: ProcessInstance) -> list[str]:
    """Return the statuses of a process, its last sub-process, and so on."""
    return [str(part.status) for part in family(process)]


def in_town(process: ProcessInstance, town: str) -> ProcessInstance:
    """Return the last errand of a process in a town."""
    same = ProcessInstance.objects.filter(parent=process, data__town=town)
    part: ProcessInstance = same.latest("pk")
    return part


def child_of(process: ProcessInstance) -> ProcessInstance:
    return family(process)[1]


def told(process: ProcessInstance) -> int:
    """Return how many incidents are open about a process."""
    return process.incidents.open().count()


def until(process: ProcessInstance, status: str) -> None:
    """Run one piece of work after the other until the sub-process has come so far."""
    while child_status(process) != status:
        drain(stop=once())


# Nothing takes it


def test_without_a_rule_both_stand_failed_and_the_child_stays_open() -> None:
    process = broken(p.Plain)
    child = child_of(process)

    assert standing(process) == ["failed", "failed"]
    assert (child.finished_at, statuses(child)["buy"]) == (None, "failed")
    assert statuses(process)["errand"] == "failed"
    assert visit(process, "errand").child == child
    said = f"SubprocessFailed: the sub-process errand {child.pk} failed at buy: ConnectionError: no line"
    assert (complaint(process).message, complaint(process).step) == (said, "errand")
    assert complaint(child).message == "ConnectionError: no line"
    error = failure_of(child)
    assert isinstance(error, SubprocessFailed)
    assert (error.process_id, error.step) == (child.pk, "buy")
    assert (error.error, error.text) == ("ConnectionError", "no line")


@pytest.mark.parametrize(
    ("definitions", "told_of"),
    [
        ([], [("errand", "buy"), ("plain", "errand")]),
        (["plain"], [("plain", "errand")]),
        (["errand"], [("errand", "buy")]),
    ],
)
def test_people_are_told_of_each_by_its_own_definition(
    definitions: list[str], told_of: list[tuple[str, str]], settings: Settings
) -> None:
    about = {"definitions": definitions} if definitions else {}
    settings.PROCESSION_NOTICES = {"ops": {"to": "ops@example.org", **about}}
    broken(p.Plain)

    found = [(item["definition"], item["step"]) for item in gathered_items()]
    assert found == told_of


def test_page_and_incident_of_each_lead_to_the_other(
    client: Client, operator: User
) -> None:
    process = broken(p.Plain)
    child = child_of(process)
    client.force_login(operator)

    def links(address: str, to: ProcessInstance) -> int:
        return client.get(address).content.decode().count(f"/processes/{to.pk}/")

    assert links(f"/processes/{process.pk}/", child) >= 1
    assert links(f"/processes/{child.pk}/", process) >= 1
    of = {
        key: client.get(f"/failures/{complaint(one).fingerprint}/").content.decode()
        for key, one in (("parent", process), ("child", child))
    }
    assert f'id="incident-{complaint(process).pk}"' in of["parent"]
    assert f'href="/processes/{child.pk}/"' in of["parent"]
    assert f'href="/processes/{process.pk}/"' in of["child"]


@pytest.mark.parametrize("pressed", [0, 1])
def test_a_retry_of_either_revives_both_in_one_commit(pressed: int) -> None:
    process = broken(p.Plain)
    retry(family(process)[pressed].pk, request=asked())
    process = go_on(process)
    assert standing(process) == ["failed", "failed"]
    assert [told(part) for part in family(process)] == [1, 1]
    faults.clear()
    retry(family(process)[pressed].pk, request=asked())

    assert standing(process) == ["waiting", "running"]
    assert statuses(process)["errand"] == "waiting"
    assert not Incident.objects.open().exists()
    assert violations() == []
    assert go_on(process).status == "completed"
    assert results(process)["report"] == "bought in Nara, reported"
    assert done.count("report") == 1
    assert ProcessInstance.objects.filter(parent=process).count() == 1


def test_a_retry_before_the_parent_has_heard_of_it_leaves_that_waiting() -> None:
    process = launch(p.Plain)
    faults["buy"] = BROKEN
    runs = process.step_runs.filter(node="errand")
    until(process, "failed")
    assert (runs.get().status, runs.get().wake_at is not None) == ("waiting", True)
    assert violations() == []
    faults.clear()
    retry(child_of(process).pk, request=asked())
    assert go_on(process).status == "completed"

    assert not Incident.objects.filter(instance=process).exists()


def child_status(process: ProcessInstance) -> str:
    child = process.children.last()
    return str(child.status) if child else ""


def once() -> Any:
    """Stop after the first piece of work."""
    looked = iter([False])
    return lambda: next(looked, True)


# A rule takes it


def test_a_catch_takes_it_and_closes_the_child(operator: User) -> None:
    process = broken(p.Caught)
    child = child_of(process)

    assert standing(process) == ["completed", "cancelled"]
    said = "errand, SubprocessFailed, 1: buy: ConnectionError: no line"
    assert results(process)["explain"] == said
    assert not Incident.objects.open().exists()
    with pytest.raises(OperationRefused, match="Its parent went on"):
        retry(child.pk, request=asked())
    assert refusals([child], operator)[child.pk]["retry"] == "Its parent went on"


@pytest.mark.parametrize("undoing_fails", [False, True])
def test_what_the_child_has_done_is_undone_when_a_rule_takes_its_failure(
    undoing_fails: bool,
) -> None:
    if undoing_fails:
        faults["come_back"] = Permanent("no train")
    process = broken(p.CaughtBack)
    if undoing_fails:
        assert standing(process) == ["completed", "failed"]
        faults.clear()
        retry(child_of(process).pk, request=asked())
        go_on(process)

    assert standing(process) == ["completed", "cancelled"]
    assert undone == ["back from Nara"]


@pytest.mark.parametrize(
    ("error", "way"), [(NO, "explain"), (BROKEN, "other")], ids=["declined", "broken"]
)
def test_a_catch_may_take_only_what_was_declined(error: Exception, way: str) -> None:
    faults["buy"] = error
    process = finished(p.OnlyDeclined)

    assert standing(process) == ["completed", "cancelled"]
    assert (list(results(process)), undone) == ([way], ["back from Nara"])
    process = finished(p.AsPermanent)
    if error is BROKEN:
        assert standing(process) == ["failed", "failed"]
    else:
        said = "errand, SubprocessDeclined, 1: buy: Permanent: sold out"
        assert results(process)["explain"] == said


@pytest.mark.parametrize(
    ("definition", "back", "deep"),
    [
        (p.Booked, ["no room in Nara"], 2),
        (p.BookedExcursion, ["back from Nara", "no room in Nara"], 2),
        (p.TopBooked, ["no room in Nara"], 3),
    ],
)
def test_a_parent_is_undone_when_its_child_declines_and_not_when_it_is_broken(
    definition: type[Workflow], back: list[str], deep: int
) -> None:
    process = broken(definition)
    assert (standing(process), undone) == (["failed"] * deep, [])
    cancel(process.pk, request=asked())
    go_on(process)
    journal.forget()
    faults["buy"] = NO
    process = finished(definition)

    assert (standing(process), undone) == (["cancelled"] * deep, back)
    assert not Incident.objects.open().exists()
    said = process.incidents.get().message
    assert said.startswith("SubprocessDeclined: the sub-process ")
    assert said.endswith("declined at buy: Permanent: sold out")


def test_a_child_that_has_undone_itself_is_followed_by_another_when_that_is_wanted() -> (
    None
):
    faults["buy"] = NO
    process = finished(p.Outing)
    first = child_of(process)
    assert (standing(process), undone) == (["failed", "cancelled"], ["back from Nara"])
    assert "declined at buy" in complaint(process).message
    faults.clear()
    retry(process.pk, request=asked())

    assert go_on(process).status == "completed"
    assert child_of(process) != first


def test_a_join_that_can_do_without_it_closes_it() -> None:
    process = broken(p.Either)

    assert standing(process) == ["completed", "cancelled"]
    assert results(process)["either"] == "rested"


def test_failing_fast_gives_the_others_up_until_either_is_retried() -> None:
    process = broken(p.Hasty)
    assert standing(process) == ["failed", "failed"]
    assert statuses(process)["sure"] == "cancelled"
    faults.clear()
    retry(child_of(process).pk, request=asked())
    assert statuses(process)["sure"] == "waiting"
    process = go_on(process)
    decide(process.pk, visit(process, "sure").pk, "yes", request=asked())

    assert go_on(process).status == "completed"


# Maps


def test_a_map_tolerates_it_and_its_window_moves_on() -> None:
    faults["buy in Nara"] = BROKEN
    process = finished(p.Round, "Nara", 5)

    assert process.status == "completed"
    assert len(results(process)["collect"]) == 4
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
    faults.clear()
    retry(process.pk if parent else last.pk, request=asked())
    process = go_on(process)

    assert (process.status, len(results(process)["collect"])) == ("completed", 4)


def test_a_retry_of_one_element_leaves_the_others_failed() -> None:
    process = broken(p.StrictRound, "Nara", 3)
    assert [told(process), Incident.objects.open().count()] == [3, 6]
    faults.clear()
    retry(in_town(process, "Nara").pk, request=asked())
    process = go_on(process)
    assert (process.status, told(process)) == ("failed", 2)
    assert in_town(process, "Nara").status == "completed"
    retry(process.pk, request=asked())

    assert go_on(process).status == "completed"
    assert ProcessInstance.objects.filter(parent=process).count() == 3


def test_a_failure_in_a_map_that_is_caught_closes_all_of_them() -> None:
    faults["buy in Osaka"] = BROKEN
    process = finished(p.CaughtRound, "Nara", 5)

    assert process.status == "completed"
    parts = ProcessInstance.objects.filter(parent=process)
    assert not parts.live().exists()
    assert in_town(process, "Osaka").status == "cancelled"
    assert "back from Osaka" in undone


# Three deep


@pytest.mark.parametrize("pressed", [0, 1, 2])
def test_it_goes_up_level_by_level_and_a_retry_at_any_revives_all(pressed: int) -> None:
    process = broken(p.Top)
    assert standing(process) == ["failed", "failed", "failed"]
    top, middle, bottom = map(complaint, family(process))
    assert bottom.message in middle.message
    assert middle.message in top.message
    faults.clear()
    retry(family(process)[pressed].pk, request=asked())

    assert standing(process) == ["waiting", "waiting", "running"]
    assert not Incident.objects.open().exists()
    assert violations() == []
    assert go_on(process).status == "completed"


def test_a_catch_at_the_top_closes_all_below() -> None:
    process = broken(p.TopCaught)

    assert standing(process) == ["completed", "cancelled", "cancelled"]
    assert not Incident.objects.open().exists()


# What people do


def test_cancelling_the_parent_closes_the_failed_child() -> None:
    process = broken(p.Top)
    cancel(process.pk, request=asked())
    go_on(process)

    assert standing(process) == ["cancelled", "cancelled", "cancelled"]
    assert not Incident.objects.open().exists()


def test_cancelling_the_failed_child_fails_the_parents_step_for_that() -> None:
    process = broken(p.Plain)
    first = child_of(process)
    cancel(first.pk, request=asked())
    process = go_on(process)
    assert standing(process) == ["failed", "cancelled"]
    assert "ChildCancelled" in complaint(process).message
    faults.clear()
    retry(process.pk, request=asked())

    assert go_on(process).status == "completed"
    assert child_of(process) != first


def test_skipping_the_failed_step_of_the_child_lets_the_parent_go_on() -> None:
    process = broken(p.Plain)
    child = child_of(process)
    skip(child.pk, visit(child, "buy").pk, "a gift", request=asked())
    process = go_on(process)

    assert standing(process) == ["completed", "completed"]
    assert results(process)["report"] == "a gift, reported"
    assert not Incident.objects.open().exists()


def test_skipping_the_step_of_the_parent_closes_the_child() -> None:
    process = broken(p.Plain)
    skip(process.pk, visit(process, "errand").pk, "nothing", request=asked())
    process = go_on(process)

    assert standing(process) == ["completed", "cancelled"]
    with pytest.raises(OperationRefused, match="Its parent went on"):
        retry(child_of(process).pk, request=asked())


@pytest.mark.parametrize("level", [0, 1])
def test_resuming_either_tries_the_failed_child_again(level: int) -> None:
    process = broken(p.Plain)
    one = family(process)[level]
    faults.clear()
    resume(one.pk, 2, request=asked())
    process = go_on(process)

    assert standing(process) == ["completed", "completed"]
    assert not Incident.objects.open().exists()
    assert ProcessInstance.objects.filter(parent=process).count() == 1


def test_restarting_the_failed_child_lets_all_above_wait_for_the_new_one() -> None:
    process = broken(p.Top)
    middle, bottom = family(process)[1:]
    faults.clear()
    restart(bottom.pk, {"town": "Uji", "errands": 1}, request=asked())
    assert standing(process)[:2] == ["waiting", "waiting"]
    assert told(process) == told(middle) == 0
    process = go_on(process)

    assert process.status == "completed"
    assert results(middle)["errand"] == "bought in Uji"


def test_a_sub_process_that_fails_when_it_is_redone_is_retried_too() -> None:
    process = finished(p.Hasty)
    faults["buy"] = BROKEN
    redo(process.pk, "errand", request=asked())
    process = go_on(process)
    assert standing(process) == ["failed", "failed"]
    faults.clear()
    retry(process.pk, request=asked())
    process = go_on(process)

    assert (process.status, told(process)) == ("waiting", 0)
    assert child_of(process).status == "completed"


# Pauses


def test_a_paused_child_reaches_its_parent_when_it_goes_on() -> None:
    process = launch(p.Caught)
    until(process, "running")
    child = child_of(process)
    faults["buy"] = BROKEN
    pause(child.pk, True, request=asked())
    StepRun.objects.filter(instance=child).update(
        remaining=None, wake_at=child.started_at
    )
    go_on(process)
    assert standing(process) == ["waiting", "paused"]
    unpause(child.pk, True, request=asked())

    assert standing(go_on(process)) == ["completed", "cancelled"]


def test_a_paused_parent_hears_of_it_when_it_goes_on() -> None:
    process = launch(p.Caught)
    until(process, "running")
    pause(process.pk, False, request=asked())
    faults["buy"] = BROKEN
    process = go_on(process)
    assert standing(process) == ["paused", "failed"]
    assert violations() == []
    unpause(process.pk, False, request=asked())

    assert standing(go_on(process)) == ["completed", "cancelled"]


def test_a_failed_child_may_be_paused_and_retried_meanwhile() -> None:
    process = broken(p.Plain)
    child = child_of(process)
    pause(child.pk, True, request=asked())
    process = go_on(process)
    assert standing(process) == ["failed", "paused"]
    faults.clear()
    retry(process.pk, request=asked())
    process = go_on(process)
    assert standing(process) == ["waiting", "paused"]
    unpause(child.pk, True, request=asked())

    assert standing(go_on(process)) == ["completed", "completed"]


# Many at once


@pytest.mark.django_db(transaction=True)
def test_a_retry_of_both_at_the_same_moment_revives_them_once() -> None:
    for _ in range(5):
        process = broken(p.Top)
        faults.clear()
        keys = [part.pk for part in family(process)]
        answers = together(*(partial(retry, pk, request=asked()) for pk in keys))
        refused = raised(answers)

        assert len(refused) < len(answers)
        assert all(isinstance(error, OperationRefused) for error in refused)
        assert {str(error) for error in refused} <= {"Nothing has failed"}
        assert go_on(process).status == "completed"
        assert done.count("buy") == 1
        journal.forget()


@pytest.mark.django_db(transaction=True)
def test_whatever_is_done_to_them_at_once_they_come_to_an_end() -> None:
    for number in range(6):
        process = broken(p.TopBooked)
        top, middle, bottom = (part.pk for part in family(process))
        faults.clear()
        acts = [
            (cancel, top),
            (cancel, bottom),
            (retry, middle),
            (pause, top),
            (cancel, middle),
            (retry, top),
        ]
        action, target = acts[number]
        answers = together(
            partial(retry, bottom, request=asked()),
            partial(retry, top, request=asked()),
            partial(action, target, request=asked()),
            drain,
            drain,
        )
        errors = raised(answers)
        assert all(isinstance(error, OperationRefused) for error in errors), errors
        process = go_on(process)
        if process.status == "paused":
            unpause(process.pk, True, request=asked())
            process = go_on(process)
        if process.status == "failed":
            retry(process.pk, request=asked())
            process = go_on(process)

        assert set(standing(process)) <= {"completed", "cancelled"}
        assert violations() == []


@pytest.mark.django_db(transaction=True)
def test_elements_that_fail_at_once_are_all_heard() -> None:
    faults["buy"] = BROKEN
    process = launch(p.StrictRound, "Nara", 5)
    assert not raised(together(drain, drain, drain))
    process = go_on(process)
    assert (process.status, told(process)) == ("failed", 5)
    faults.clear()
    parts = ProcessInstance.objects.filter(parent=process)
    keys = list(parts.values_list("pk", flat=True))
    answers = together(
        *(partial(retry, pk, request=asked()) for pk in [*keys, process.pk]), drain
    )
    assert all(isinstance(error, OperationRefused) for error in raised(answers))
    process = go_on(process)

    assert (process.status, done.count("collect")) == ("completed", 1)


def claimed_by_the_dead() -> None:
    """Have a worker that will die claim what the parent is to hear."""
    claimed = step_runs.claim("default", "dead", 8, 10.0, **CLAIMED)
    assert [one.work.node for one in claimed] == ["errand"]


def test_a_worker_that_dies_when_it_was_to_hear_of_it_is_followed_by_another() -> None:
    process = launch(p.Caught)
    faults["buy"] = BROKEN
    until(process, "failed")
    claimed_by_the_dead()
    assert go_on(process).status == "waiting"
    leases.end(["dead"])

    assert standing(go_on(process)) == ["completed", "cancelled"]
    assert done.count("explain") == 1


def test_a_worker_that_dies_when_it_was_to_hear_that_it_goes_on() -> None:
    process = broken(p.Plain)
    child = child_of(process)
    skip(child.pk, visit(child, "buy").pk, "a gift", request=asked())
    claimed_by_the_dead()
    leases.end(["dead"])

    assert go_on(process).status == "completed"


def test_one_whose_end_kills_whoever_hears_of_it_is_given_up_until_it_is_retried() -> (
    None
):
    process = launch(p.Plain)
    until(process, "completed")
    attempts = Policy().attempts()
    for _ in range(attempts):
        [claimed] = step_runs.claim("default", "dead", 8, 10.0, **CLAIMED)
        assert (claimed.work.node, claimed.work.status) == ("errand", "waiting")
        work = leases.name_of(step_runs, claimed.work.pk)
        leases.end(["dead"], in_hand={work: Lost.DIED})
    process = go_on(process)

    assert standing(process) == ["failed", "completed"]
    incident = process.incidents.open().get()
    assert f"died or was killed in each of {attempts} attempts" in incident.message
    retry(process.pk, request=asked())
    assert go_on(process).status == "completed"


def test_an_end_that_was_claimed_and_not_looked_at_is_heard_however_often() -> None:
    process = launch(p.Plain)
    until(process, "completed")
    for _ in range(10):
        claimed_by_the_dead()
        leases.end(["dead"])

    assert go_on(process).status == "completed"
    causes = process.checkpoints.order_by("revision").values_list("cause", flat=True)
    assert [cause.split(":")[0] for cause in causes] == ["start", *["step"] * 3]


# What it costs


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        ({"status": "waiting", "error": ""}, "was not told"),
        ({"status": "failed"}, "stands failed, but"),
    ],
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
    settle = of_step._settle_somehow
    replaced: list[UUID] = []

    def settle_late(run: StepRun, error: Exception, *others: Any) -> None:
        if run.child_id is not None and not replaced:
            faults.clear()
            replaced.append(run.child_id)
            again = {"town": "Kobe", "errands": 1}
            restart(run.child_id, again, request=asked())
        settle(run, error, *others)

    monkeypatch.setattr(of_step, "_settle_somehow", settle_late)
    process = go_on(broken(definition))

    assert replaced
    assert standing(process) == ["completed", "completed"]
    assert not process.incidents.exists()
    assert statuses(process).get("other") != "done"
