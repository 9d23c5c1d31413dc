"""Repair of a workflow: results that are edited, steps that are skipped and redone, all in one commit."""

from typing import Any

import pytest

from orchestrator.definition import Workflow, ask, fork, join, step, then
from orchestrator.engine.operations import (
    Effect,
    cancel,
    pause,
    plan_repair,
    repair,
    resume,
    unpause,
)
from orchestrator.models import Checkpoint, OperatorAction, ProcessInstance
from tests.apps.compensation import processes
from tests.apps.compensation import steps as s
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, undone
from tests.apps.patterns.desk import finished, go_on, results, statuses, visits
from tests.apps.pausing import processes as apps
from tests.apps.subprocess_failures import processes as errands
from tests.services.asking import asked
from tests.services.doing import refused
from tests.services.operated import BAD, decided, failed, knowing, mistakes, operated

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]


class Paid(Workflow):
    """A trip whose payment cannot be made twice."""

    Input = s.Traveller
    flow = (
        fork(s.plan, into=[step(s.flight, idempotent=False), s.hotel]),
        join(s.flight, s.hotel, into=s.invoice),
        then(s.invoice, s.deliver),
    )


def end() -> None:
    """Does nothing."""


class Either(Workflow):
    """Asks in two ways; the first answer counts."""

    Input = s.Traveller
    phone, mail = ask("phone", s.Answer), ask("mail", s.Answer)
    flow = (
        fork(s.plan, into=[phone, mail]),
        join(phone, mail, into=end, wait_for="any", rest="cancel"),
    )


more = knowing(*apps.WORKFLOWS, Paid, Either, errands.Errand, errands.Plain)


def result(process: ProcessInstance, node: str, value: Any) -> dict[str, Any]:
    last = visits(process, node)[-1]
    return {"edit": "result", "target": str(last.pk), "value": value}


def skip(process: ProcessInstance, node: str, value: Any) -> dict[str, Any]:
    return {**result(process, node, value), "edit": "skip"}


def redo(node: str) -> dict[str, Any]:
    return {"edit": "redo", "target": node}


def repaired(process: ProcessInstance, *edits: Any) -> ProcessInstance:
    """Repair a process, and run whatever is ready then."""
    return operated(repair, process, list(edits))


# Results


def test_s7_1_a_result_is_edited_and_what_runs_later_reads_it() -> None:
    process = finished(processes.Trip)

    action = repair(process.pk, [result(process, "invoice", 99)], request=asked())

    before, after = visits(process, "invoice")
    assert (before.result, before.status) == (30, "done")
    assert (after.result, after.status, after.round) == (99, "done", 2)
    assert action.after["results"] == [["invoice", 30, 99]]
    assert results(decided(process))["deliver"] == "delivered 99"
    assert done.count("invoice") == 1


def test_s7_1_a_result_that_is_edited_twice_counts_as_it_was_edited_last() -> None:
    process = finished(processes.Trip)

    repaired(process, result(process, "invoice", 1))
    repaired(process, result(process, "invoice", 2))

    assert [run.result for run in visits(process, "invoice")] == [30, 1, 2]
    assert results(process)["invoice"] == 2


def test_s7_1_a_failed_step_is_tried_again_on_a_result_that_was_edited() -> None:
    process = failed("deliver", of=Paid)

    repaired(process, result(process, "invoice", 7), {"edit": "retry"})

    assert process.status == "completed"
    assert results(process)["deliver"] == "delivered 7"
    assert not process.incidents.open().exists()


def test_s7_1_an_element_of_a_map_has_its_result_edited() -> None:
    process = failed("pay", of=processes.Block)
    runs = process.step_runs.filter(node="reserve", item=0).order_by("round")

    edit = {"edit": "result", "target": str(runs.get().pk), "value": "the attic"}
    repaired(process, edit, redo("total"))

    assert [run.result for run in runs.all()] == ["room 1", "the attic"]


def test_s7_1_what_is_undone_is_undone_with_the_edited_result() -> None:
    process = finished(processes.Undoable)

    repaired(process, result(process, "flight", "by train"))
    operated(cancel, process)

    # As of a step that was redone: what was done last is undone first.
    assert undone == ["release by train", "release 2 nights in Nara"]


def test_s7_1_a_process_is_resumed_from_before_it_was_repaired() -> None:
    process = finished(processes.Trip)
    at = process.revision
    repaired(process, result(process, "invoice", 99))

    operated(resume, process, at)

    assert decided(process).status == "completed"


# Several at once


def test_s7_1_two_branches_are_skipped_and_their_join_goes_on() -> None:
    process = failed("flight", "hotel")
    before = process.revision

    hotel, flight = ("hotel", "a tent"), ("flight", "on foot")
    repaired(process, skip(process, *hotel), skip(process, *flight))

    assert statuses(process)["flight"] == statuses(process)["hotel"] == "skipped"
    assert results(process)["invoice"] == len("a tent") + len("on foot")
    operators = Checkpoint.objects.filter(cause__startswith="operator:")
    assert operators.get().revision == before + 1
    assert not process.incidents.open().exists()


def test_s7_1_several_steps_are_redone_at_once() -> None:
    process = repaired(finished(processes.Trip), redo("flight"), redo("hotel"))

    assert (done.count("flight"), done.count("hotel"), done.count("plan")) == (2, 2, 1)
    assert process.status == "waiting"


def fail() -> None:
    raise BAD


def test_s7_1_all_elements_of_a_map_that_failed_are_skipped_at_once() -> None:
    apps.during.update({f"square {number}": fail for number in range(3)})
    process = finished(apps.Squares, 3)
    apps.during.clear()
    assert process.status == "failed"
    runs = process.step_runs.filter(node="square", item__isnull=False)
    edits = [
        {"edit": "skip", "target": str(run.pk), "value": 10 * (run.item or 0)}
        for run in runs
    ]

    assert repaired(process, *edits).status == "completed"
    assert results(process)["total"] == 30


def test_s7_1_a_process_that_stands_still_is_repaired_and_stands_still() -> None:
    process = failed("flight")
    pause(process.pk, request=asked())

    on_foot = skip(process, "flight", "on foot")
    assert repaired(process, on_foot).status == "paused"
    assert "invoice" not in done

    assert operated(unpause, process).status == "waiting"
    assert results(process)["invoice"] == len("2 nights in Nara") + len("on foot")


def test_s7_1_a_part_of_another_process_is_repaired_and_that_goes_on() -> None:
    whole = failed("buy", of=errands.Plain)
    part = whole.children.get()
    assert part.status == "failed"

    repaired(part, {"edit": "retry"})

    assert (go_on(whole).status, part.status) == ("completed", "completed")
    assert not whole.incidents.open().exists()


def test_s7_3_one_edit_that_cannot_be_made_leaves_everything_as_it_was() -> None:
    process = failed("flight")
    edits = [skip(process, "flight", "on foot"), redo("deliver")]

    refused("redo deliver cannot be made: deliver has", repair, process, edits)

    process.refresh_from_db()
    assert (process.status, statuses(process)["flight"]) == ("failed", "failed")


# What is wrong


def test_s7_5_an_edit_of_a_workflow_that_cannot_be_made_says_why() -> None:
    process = failed("flight")
    number, text = {"number": "1"}, "Input should be a valid string"
    no_run = "the process has no step run"
    shown: list[tuple[dict[str, Any], str]] = [
        ({"edit": "data", "value": {}}, "a workflow keeps the input it started with"),
        ({"edit": "move", "target": "invoice"}, "a workflow is where its graph leads"),
        ({"edit": "skip_command", "target": "x"}, "a workflow issues no commands"),
        (skip(process, "plan", None), "plan is over meanwhile: done"),
        (skip(process, "flight", 1), text),
        (result(process, "hotel", 1), text),
        (result(process, "flight", "x"), "flight has given no result in this visit"),
        ({"edit": "result", "target": "0", "value": 1}, f"{no_run} 0"),
        ({"edit": "result", "target": "²", "value": 1}, f"{no_run} ²"),
        (redo("flight"), "flight is not finished: retry or skip it"),
        (redo("nothing"), "the running code has no step nothing"),
        (
            {"edit": "event", "target": "VisaGranted", "value": number},
            "trip takes no VisaGranted in any step",
        ),
    ]
    for edit, why in shown:
        assert why in mistakes(process, edit)[0], edit


def test_s7_5_of_one_step_the_result_is_edited_or_it_is_redone() -> None:
    process = finished(processes.Trip)

    found = mistakes(process, result(process, "invoice", 1), redo("invoice"))

    assert found == {1: "the result of invoice is edited: one or the other"}


def test_s7_5_what_another_edit_would_cancel_cannot_be_skipped() -> None:
    process = finished(Either)
    edits = [skip(process, "phone", "yes"), skip(process, "mail", "no")]

    assert mistakes(process, *edits) == {1: "mail would be cancelled by another edit"}
    refused("mail would be cancelled", repair, process, edits)
    assert repaired(process, edits[0]).status == "completed"


# What would run


def test_s7_2_a_plan_says_which_steps_begin_and_which_run_again() -> None:
    process = failed("hotel", of=Paid)

    plan = plan_repair(process, [skip(process, "hotel", "a tent"), redo("flight")])

    assert (sorted(plan.stands), plan.leaves) == (["flight", "invoice"], ["hotel"])
    assert plan.unsafe == [Effect("flight", "step", again=True, safe=False)]
    assert Effect("invoice", "step", again=False, safe=True) in plan.effects
    assert not OperatorAction.objects.exists()


def test_s7_2_a_join_that_still_waits_does_not_begin() -> None:
    process = failed("flight", "hotel")
    one, other = skip(process, "flight", "on foot"), skip(process, "hotel", "a tent")

    assert plan_repair(process, [one]).stands == []
    assert plan_repair(process, [one, other]).stands == ["invoice"]
