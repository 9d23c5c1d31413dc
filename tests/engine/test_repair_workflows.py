"""Repair of a workflow: results that are edited, steps that are skipped and redone, all in one commit."""

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator import Permanent
from orchestrator.definition import Workflow, ask, fork, join, step, then
from orchestrator.engine.operations import (
    Effect,
    cancel,
    decide,
    pause,
    plan_repair,
    repair,
    resume,
    unpause,
)
from orchestrator.exceptions import OperationRefused
from orchestrator.models import Checkpoint, OperatorAction, ProcessInstance
from tests.apps.compensation import processes
from tests.apps.compensation import steps as s
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, faults, undone
from tests.apps.patterns.desk import (
    finished,
    go_on,
    results,
    statuses,
    visit,
    visits,
)
from tests.apps.pausing import processes as apps
from tests.apps.process_managers.fixtures import known as known_too
from tests.apps.subprocess_failures import processes as errands
from tests.services.asking import asked

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

BAD = Permanent("no line")


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


@pytest.fixture(scope="module", autouse=True)
def more() -> Iterator[None]:
    """Let the running code have these workflows too."""
    yield from known_too(*apps.WORKFLOWS, Paid, Either, errands.Errand, errands.Plain)


def failed(*names: str, of: Any = processes.Trip) -> ProcessInstance:
    """Run a process until these steps have failed for good; another attempt would work."""
    for name in names:
        faults[name] = BAD
    process = finished(of)
    faults.clear()
    assert process.status == "failed"
    return process


def result(process: ProcessInstance, node: str, value: Any) -> dict[str, Any]:
    last = visits(process, node)[-1]
    return {"edit": "result", "target": str(last.pk), "value": value}


def skip(process: ProcessInstance, node: str, value: Any) -> dict[str, Any]:
    return {**result(process, node, value), "edit": "skip"}


def redo(node: str) -> dict[str, Any]:
    return {"edit": "redo", "target": node}


def mistakes(process: ProcessInstance, *edits: Any) -> dict[int, str]:
    """Return what is wrong with edits, by their places."""
    plan = plan_repair(process, list(edits))
    return {place: str(mistake) for place, mistake in plan.mistakes.items()}


# Results


def test_s7_1_a_result_is_edited_and_what_runs_later_reads_it() -> None:
    process = finished(processes.Trip)

    action = repair(process.pk, [result(process, "invoice", 99)], request=asked())

    before, after = visits(process, "invoice")
    assert (before.result, before.status) == (30, "done")
    assert (after.result, after.status, after.round) == (99, "done", 2)
    assert action.after["results"] == [["invoice", 30, 99]]
    decide(process.pk, visit(process, "approve").pk, "yes", request=asked())
    assert results(go_on(process))["deliver"] == "delivered 99"
    assert done.count("invoice") == 1


def test_s7_1_a_result_that_is_edited_twice_counts_as_it_was_edited_last() -> None:
    process = finished(processes.Trip)

    repair(process.pk, [result(process, "invoice", 1)], request=asked())
    repair(process.pk, [result(process, "invoice", 2)], request=asked())

    assert [run.result for run in visits(process, "invoice")] == [30, 1, 2]
    assert results(process)["invoice"] == 2


def test_s7_1_a_failed_step_is_tried_again_on_a_result_that_was_edited() -> None:
    process = failed("deliver", of=Paid)

    edits = [result(process, "invoice", 7), {"edit": "retry"}]
    repair(process.pk, edits, request=asked())

    assert go_on(process).status == "completed"
    assert results(process)["deliver"] == "delivered 7"
    assert not process.incidents.open().exists()


def test_s7_1_an_element_of_a_map_has_its_result_edited() -> None:
    process = failed("pay", of=processes.Block)
    one = process.step_runs.get(node="reserve", item=0)

    edit = {"edit": "result", "target": str(one.pk), "value": "the attic"}
    repair(process.pk, [edit, redo("total")], request=asked())
    go_on(process)

    rounds = process.step_runs.filter(node="reserve", item=0).order_by("round")
    assert [run.result for run in rounds] == ["room 1", "the attic"]


def test_s7_1_what_is_undone_is_undone_with_the_edited_result() -> None:
    process = finished(processes.Undoable)

    repair(process.pk, [result(process, "flight", "by train")], request=asked())
    cancel(process.pk, request=asked())
    go_on(process)

    # As of a step that was redone: what was done last is undone first.
    assert undone == ["release by train", "release 2 nights in Nara"]


def test_s7_1_a_process_is_resumed_from_before_it_was_repaired() -> None:
    process = finished(processes.Trip)
    at = process.revision
    repair(process.pk, [result(process, "invoice", 99)], request=asked())

    resume(process.pk, at, request=asked())
    decide(process.pk, visits(go_on(process), "approve")[-1].pk, "yes", request=asked())

    assert go_on(process).status == "completed"


# Several at once


def test_s7_1_two_branches_are_skipped_and_their_join_goes_on() -> None:
    process = failed("flight", "hotel")
    edits = [skip(process, "hotel", "a tent"), skip(process, "flight", "on foot")]
    before = process.revision

    repair(process.pk, edits, request=asked())
    go_on(process)

    assert statuses(process)["flight"] == statuses(process)["hotel"] == "skipped"
    assert results(process)["invoice"] == len("a tent") + len("on foot")
    operators = Checkpoint.objects.filter(cause__startswith="operator:")
    assert operators.get().revision == before + 1
    assert not process.incidents.open().exists()


def test_s7_1_several_steps_are_redone_at_once() -> None:
    process = finished(processes.Trip)

    repair(process.pk, [redo("flight"), redo("hotel")], request=asked())
    go_on(process)

    assert (done.count("flight"), done.count("hotel"), done.count("plan")) == (2, 2, 1)
    assert process.status == "waiting"


def test_s7_1_all_elements_of_a_map_that_failed_are_skipped_at_once() -> None:
    process = _failed_squares()
    runs = process.step_runs.filter(node="square", item__isnull=False)
    edits = [
        {"edit": "skip", "target": str(run.pk), "value": 10 * (run.item or 0)}
        for run in runs
    ]

    repair(process.pk, edits, request=asked())

    assert go_on(process).status == "completed"
    assert results(process)["total"] == 30


def _failed_squares() -> ProcessInstance:
    """Run three elements that fail for good."""

    def fail() -> None:
        raise BAD

    for number in range(3):
        apps.during[f"square {number}"] = fail
    process = finished(apps.Squares, 3)
    apps.during.clear()
    assert process.status == "failed"
    return process


def test_s7_1_a_process_that_stands_still_is_repaired_and_stands_still() -> None:
    process = failed("flight")
    pause(process.pk, request=asked())

    repair(process.pk, [skip(process, "flight", "on foot")], request=asked())
    assert go_on(process).status == "paused"
    assert "invoice" not in done
    unpause(process.pk, request=asked())

    assert go_on(process).status == "waiting"
    assert results(process)["invoice"] == len("2 nights in Nara") + len("on foot")


def test_s7_1_a_part_of_another_process_is_repaired_and_that_goes_on() -> None:
    whole = failed("buy", of=errands.Plain)
    part = ProcessInstance.objects.get(parent=whole)
    assert part.status == "failed"

    repair(part.pk, [{"edit": "retry"}], request=asked())
    go_on(whole)

    part.refresh_from_db()
    assert (whole.status, part.status) == ("completed", "completed")
    assert not whole.incidents.open().exists()


def test_s7_3_one_edit_that_cannot_be_made_leaves_everything_as_it_was() -> None:
    process = failed("flight")
    edits = [skip(process, "flight", "on foot"), redo("deliver")]

    with pytest.raises(
        OperationRefused, match="redo deliver cannot be made: deliver has"
    ):
        repair(process.pk, edits, request=asked())

    process.refresh_from_db()
    assert (process.status, statuses(process)["flight"]) == ("failed", "failed")


# What is wrong


def test_s7_5_an_edit_of_a_workflow_that_cannot_be_made_says_why() -> None:
    process = failed("flight")
    plan, hotel = visits(process, "plan")[0], visits(process, "hotel")[0]
    shown: list[dict[str, Any]] = [
        {"edit": "data", "value": {}},
        {"edit": "move", "target": "invoice"},
        {"edit": "skip_command", "target": "x"},
        skip(process, "plan", None),
        skip(process, "flight", 1),
        result(process, "hotel", 1),
        result(process, "flight", "by train"),
        {"edit": "result", "target": "0", "value": 1},
        {"edit": "result", "target": "²", "value": 1},
        redo("flight"),
        redo("nothing"),
        {"edit": "event", "target": "VisaGranted", "value": {"number": "1"}},
    ]
    why = {
        edit["edit"] + str(edit.get("target", "")): mistakes(process, edit)[0]
        for edit in shown
    }

    assert why["data"].startswith("a workflow keeps the input it started with")
    assert why["moveinvoice"].startswith("a workflow is where its graph leads")
    assert why["skip_commandx"] == "a workflow issues no commands"
    assert why[f"skip{plan.pk}"] == "plan is over meanwhile: done"
    assert (
        "Input should be a valid string"
        in why[f"skip{visits(process, 'flight')[0].pk}"]
    )
    assert why[f"result{hotel.pk}"] == "Input should be a valid string"
    assert (
        "flight has given no result in this visit"
        in why[f"result{visits(process, 'flight')[0].pk}"]
    )
    assert why["result0"] == "the process has no step run 0"
    assert why["result²"] == "the process has no step run ²"
    assert why["redoflight"] == "flight is not finished: retry or skip it"
    assert why["redonothing"] == "the running code has no step nothing"
    assert why["eventVisaGranted"] == "trip takes no VisaGranted in any step"


def test_s7_5_of_one_step_the_result_is_edited_or_it_is_redone() -> None:
    process = finished(processes.Trip)

    found = mistakes(process, result(process, "invoice", 1), redo("invoice"))

    assert found == {1: "the result of invoice is edited: one or the other"}


def test_s7_5_what_another_edit_would_cancel_cannot_be_skipped() -> None:
    process = finished(Either)
    edits = [skip(process, "phone", "yes"), skip(process, "mail", "no")]

    assert mistakes(process, *edits) == {1: "mail would be cancelled by another edit"}
    with pytest.raises(OperationRefused, match="mail would be cancelled"):
        repair(process.pk, edits, request=asked())
    repair(process.pk, edits[:1], request=asked())
    assert go_on(process).status == "completed"


# What would run


def test_s7_2_a_plan_says_which_steps_begin_and_which_run_again() -> None:
    process = failed("hotel", of=Paid)
    edits = [skip(process, "hotel", "a tent"), redo("flight")]

    plan = plan_repair(process, edits)

    assert plan.stands == ["invoice", "flight"] or plan.stands == ["flight", "invoice"]
    assert plan.leaves == ["hotel"]
    assert plan.unsafe == [Effect("flight", "step", again=True, safe=False)]
    assert Effect("invoice", "step", again=False, safe=True) in plan.effects
    assert not OperatorAction.objects.exists()


def test_s7_2_a_join_that_still_waits_does_not_begin() -> None:
    process = failed("flight", "hotel")

    assert plan_repair(process, [skip(process, "flight", "on foot")]).stands == []
    both = [skip(process, "flight", "on foot"), skip(process, "hotel", "a tent")]
    assert plan_repair(process, both).stands == ["invoice"]
