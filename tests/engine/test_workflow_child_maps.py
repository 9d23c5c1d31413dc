"""Maps over sub-processes: one for each element, in the window, and what becomes of them when something goes wrong."""

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from orchestrator import Permanent
from orchestrator.engine.drain import drain
from orchestrator.engine.invariants.progress import progress
from orchestrator.engine.operations import cancel, decide, redo, resume, retry, skip
from orchestrator.engine.steps import subprocesses
from orchestrator.models import Incident, ProcessInstance, StepRun
from tests.apps.compensation import journal, rallies
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, faults
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
from tests.services.asking import asked

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

BAD = Permanent("no line")


def legs(process: ProcessInstance) -> list[str]:
    """Return the cities of the sub-processes that have not ended, in the order in which they began."""
    live = ProcessInstance.objects.live().filter(parent=process)
    return [child.correlation_key for child in live.order_by("pk")]


def leg_to(process: ProcessInstance, city: str) -> ProcessInstance:
    """Return the last sub-process to a city."""
    same = ProcessInstance.objects.filter(parent=process, correlation_key=city)
    child: ProcessInstance = same.latest("pk")
    return child


def look(process: ProcessInstance, city: str) -> None:
    """Decide for the leg to a city; nothing is run."""
    child = leg_to(process, city)
    decide(child.pk, visit(child, "look").pk, "yes", request=asked())


def looked(process: ProcessInstance, *cities: str) -> ProcessInstance:
    """Let the legs to these cities come to their end, one after the other."""
    for city in cities:
        look(process, city)
        process = go_on(process)
    return process


def element(process: ProcessInstance, number: int) -> StepRun:
    return process.step_runs.filter(node="leg", item=number).latest("pk")


def arrived(*cities: str) -> list[str]:
    """Return the results of the legs of a process of one night for each of some cities."""
    return [f"arrived after {len(rallies.CITIES)} days to {city}" for city in cities]


def rally() -> ProcessInstance:
    return finished(rallies.Rally, "Ito", len(rallies.CITIES))


# Results


def test_each_element_has_a_sub_process_and_their_results_are_a_list_in_the_same_order() -> (
    None
):
    process = finished(rallies.Regretted, "Ito", 3)
    runs = [element(process, number) for number in range(3)]
    begun = [run.child for run in runs]

    assert [child.data["city"] for child in begun if child] == list(rallies.CITIES[:3])
    assert {child.parent for child in begun if child} == {process}
    assert [(run.kind, run.status, run.element) for run in runs] == [
        ("item", "waiting", city) for city in rallies.CITIES[:3]
    ]
    assert ProcessInstance.objects.filter(parent=process).count() == 3
    assert process.status == "waiting"

    process = looked(process, "Osaka", "Kobe", "Nara")

    cities = [f"arrived after 3 days to {city}" for city in ("Kobe", "Nara", "Osaka")]
    assert results(process)["gather"] == cities
    assert statuses(process)["approve"] == "waiting"


def test_the_pages_lead_from_each_element_to_its_sub_process_and_back(
    client: Client, operator: User
) -> None:
    client.force_login(operator)
    process = finished(rallies.Regretted, "Ito", 3)
    pages = {
        pk: client.get(f"/processes/{pk}/?step=leg").content.decode()
        for pk in (process.pk, leg_to(process, "Nara").pk)
    }

    for city in rallies.CITIES[:3]:
        link = f'href="/processes/{leg_to(process, city).pk}/"'
        assert pages[process.pk].count(link) == 2  # its element, and the sub-processes
    assert f'href="/processes/{process.pk}/"' in pages[leg_to(process, "Nara").pk]


def test_nothing_else_than_its_end_wakes_the_last_of_them() -> None:
    process = finished(rallies.Regretted, "Ito", 1)

    assert (process.status, legs(process)) == ("waiting", ["Kobe"])
    assert not list(progress())


def test_only_so_many_run_at_once() -> None:
    process = rally()
    assert legs(process) == ["Kobe", "Nara"]
    process = looked(process, "Nara")
    assert legs(process) == ["Kobe", "Osaka"]
    process = looked(process, "Kobe", "Osaka", "Kyoto")
    assert legs(process) == ["Uji"]
    process = looked(process, "Uji")

    assert results(process)["gather"] == arrived(*rallies.CITIES)
    assert ProcessInstance.objects.filter(parent=process).count() == 5


def test_an_element_may_be_a_dataclass_and_a_sub_process_end_at_once() -> None:
    process = finished(rallies.Crossing, "Ito", 3)

    assert process.status == "completed"
    assert results(process)["add"] == ["1 in Kobe", "2 in Nara", "3 in Osaka"]


def test_without_elements_there_are_no_sub_processes() -> None:
    process = finished(rallies.Rally, "Ito", 0)

    assert results(process)["gather"] == []
    assert not ProcessInstance.objects.filter(parent=process).exists()


@pytest.mark.django_db(transaction=True)
def test_ends_at_the_same_moment_are_all_heard_once() -> None:
    process = finished(rallies.Regretted, "Ito", 4)
    for city in rallies.CITIES[:4]:
        look(process, city)
    assert not raised(together(drain, drain, drain))
    process = go_on(process)

    assert len(results(process)["gather"]) == 4
    assert done.count("gather") == 1
    assert ProcessInstance.objects.filter(parent=process).count() == 4


@pytest.mark.django_db(transaction=True)
def test_elements_that_start_at_the_same_moment_have_one_sub_process_each() -> None:
    process = launch(rallies.Regretted, "Ito", 5)
    assert not raised(together(drain, drain, drain))
    process = go_on(process)

    assert sorted(legs(process)) == sorted(rallies.CITIES)


# Failures


def test_failures_are_put_up_with_as_far_as_it_says() -> None:
    process = rally()
    cancel(leg_to(process, "Kobe").pk, request=asked())
    process = go_on(process)
    assert legs(process) == ["Nara", "Osaka"]
    assert (process.status, statuses(process)["leg"]) == ("waiting", "waiting")
    process = looked(process, "Nara", "Osaka", "Kyoto", "Uji")

    assert results(process)["gather"] == arrived("Nara", "Osaka", "Kyoto", "Uji")
    assert not Incident.objects.open().exists()


def test_one_failure_too_many_is_an_incident_and_retried_as_a_new_one() -> None:
    process = rally()
    for city in ("Kobe", "Nara"):
        cancel(leg_to(process, city).pk, request=asked())
        process = go_on(process)
    assert process.status == "failed"
    assert "was cancelled" in complaint(process).message
    assert legs(process) == ["Osaka"]
    retry(process.pk, request=asked())
    process = go_on(process)
    assert legs(process) == ["Osaka", "Nara"]
    process = looked(process, "Nara", "Osaka", "Kyoto", "Uji")

    assert results(process)["gather"] == arrived("Nara", "Osaka", "Kyoto", "Uji")


def test_a_failure_that_is_caught_calls_the_others_off() -> None:
    process = finished(rallies.Wary, "Ito", 3)
    cancel(leg_to(process, "Nara").pk, request=asked())
    process = go_on(process)

    assert (process.status, legs(process)) == ("completed", [])
    assert results(process)["give_up"] == "home after 3 days"
    assert sorted(journal.undone) == [
        f"back from 3 days to {city}" for city in ("Kobe", "Nara", "Osaka")
    ]


def test_what_a_failure_has_cancelled_begins_anew_in_the_window() -> None:
    faults["rest"] = BAD
    process = finished(rallies.Hurried, "Ito", 4)
    first = leg_to(process, "Kobe")
    approve = visit(process, "approve")
    decide(process.pk, approve.pk, "yes", request=asked())
    process = go_on(process)
    assert (process.status, legs(process)) == ("failed", [])
    faults.clear()
    retry(process.pk, request=asked())
    process = go_on(process)
    assert legs(process) == ["Kobe", "Nara"]
    assert leg_to(process, "Kobe") != first
    process = looked(process, "Kobe", "Nara", "Osaka", "Kyoto")

    assert process.status == "completed"


def test_one_that_went_on_after_a_resumption_may_have_to_wait_for_its_turn() -> None:
    process = finished(rallies.Hurried, "Ito", 4)
    before = process.revision
    process = looked(process, "Kobe")
    resume(process.pk, before, request=asked())
    process = go_on(process)
    assert legs(process) == ["Nara", "Osaka"]
    faults["rest"] = BAD
    approve = process.step_runs.get(node="approve", finished_at=None)
    decide(process.pk, approve.pk, "yes", request=asked())
    process = go_on(process)
    faults.clear()
    retry(process.pk, request=asked())
    process = go_on(process)
    assert sorted(legs(process)) == ["Kobe", "Nara"]
    process = looked(process, "Kobe", "Nara", "Osaka", "Kyoto")

    assert process.status == "completed"


# Ends


def test_with_the_process_all_of_them_are_cancelled() -> None:
    process = rally()
    cancel(process.pk, request=asked())
    process = go_on(process)

    assert (process.status, legs(process)) == ("cancelled", [])
    assert sorted(journal.undone) == [
        f"back from 5 days to {city}" for city in ("Kobe", "Nara")
    ]
    assert not StepRun.objects.filter(finished_at=None).exists()


@pytest.mark.django_db(transaction=True)
def test_a_cancellation_while_they_start_or_end_leaves_nothing_behind() -> None:
    for number in range(4):
        journal.forget()
        process = launch(rallies.Regretted, f"P-{number}", 3)
        if number % 2:
            process = go_on(process)
            look(process, "Kobe")
        together(drain, partial(cancel, process.pk, request=asked()), drain)
        process = go_on(process)

        assert (process.status, legs(process)) == ("cancelled", [])
        assert not StepRun.objects.filter(finished_at=None).exists()


def test_one_that_is_about_to_start_when_the_process_is_cancelled_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = launch(rallies.Regretted, "Ito", 1)
    original = subprocesses.input_of

    def meanwhile(*given: Any) -> Any:
        cancel(process.pk, request=asked())
        return original(*given)

    with monkeypatch.context() as patch:
        patch.setattr(subprocesses, "input_of", meanwhile)
        process = go_on(process)

    assert process.status == "cancelled"
    assert not ProcessInstance.objects.filter(parent=process).exists()


def test_what_they_did_is_undone_one_by_one_with_each_result() -> None:
    process = finished(rallies.Regretted, "Ito", 2)
    process = looked(process, "Nara", "Kobe")
    cancel(process.pk, request=asked())
    go_on(process)

    assert journal.undone == [
        "forget Kobe: arrived after 2 days to Kobe",
        "forget Nara: arrived after 2 days to Nara",
    ]


# Operators


def test_an_element_that_is_skipped_cancels_its_sub_process() -> None:
    process = rally()
    skip(process.pk, element(process, 0).pk, "by train", request=asked())
    process = go_on(process)
    assert legs(process) == ["Nara", "Osaka"]
    assert leg_to(process, "Kobe").status == "cancelled"
    process = looked(process, "Nara", "Osaka", "Kyoto", "Uji")

    assert results(process)["gather"][0] == "by train"


def test_an_element_that_is_skipped_before_it_begins_makes_no_room() -> None:
    process = rally()
    skip(process.pk, element(process, 3).pk, "by train", request=asked())
    process = go_on(process)

    assert legs(process) == ["Kobe", "Nara"]


def test_it_is_redone_with_new_sub_processes() -> None:
    process = finished(rallies.Regretted, "Ito", 2)
    process = looked(process, "Kobe", "Nara")
    redo(process.pk, "leg", request=asked())
    process = go_on(process)
    assert legs(process) == ["Kobe", "Nara"]
    process = looked(process, "Kobe", "Nara")

    assert [element(process, number).round for number in (0, 1)] == [2, 2]
    assert ProcessInstance.objects.filter(parent=process).count() == 4
    assert statuses(process)["approve"] == "waiting"


def test_those_that_were_open_at_a_checkpoint_go_on() -> None:
    process = rally()
    before = process.revision
    process = looked(process, "Kobe")
    nara = leg_to(process, "Nara")
    resume(process.pk, before, request=asked())
    process = go_on(process)
    assert legs(process) == ["Nara", "Osaka"]
    assert element(process, 1).child == nara
    process = looked(process, "Nara", "Osaka", "Kobe", "Kyoto", "Uji")

    assert results(process)["gather"] == arrived(*rallies.CITIES)


def test_one_that_ended_before_that_could_be_heard_is_heard_after_it() -> None:
    process = rally()
    look(process, "Kobe")
    child = leg_to(process, "Kobe")
    skip(child.pk, visit(child, "arrive").pk, "by train", request=asked())
    assert legs(process) == ["Nara"]
    resume(process.pk, process.revision, request=asked())
    process = go_on(process)

    assert legs(process) == ["Nara", "Osaka"]
    assert (element(process, 0).child, element(process, 0).result) == (
        child,
        "by train",
    )


def test_those_that_began_after_a_checkpoint_are_cancelled() -> None:
    process = rally()
    resume(process.pk, 1, request=asked())
    process = go_on(process)

    assert legs(process) == ["Kobe", "Nara"]
    assert ProcessInstance.objects.filter(parent=process).count() == 4
