"""Maps over sub-processes: one for each element, in the window, and what becomes of them when something goes wrong."""

from typing import Any

import pytest

from orchestrator.engine.invariants.progress import progress
from orchestrator.engine.loops.drain import drain
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
from tests.services.client import Read
from tests.services.operated import BAD, decided, mended, operated, press, troubled

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]


def legs(process: ProcessInstance) -> list[str]:
    """Return the cities of the sub-processes that have not ended, in the order in which they began."""
    live = process.children.filter(finished_at=None)
    return [child.correlation_key for child in live.order_by("pk")]


def leg_to(process: ProcessInstance, city: str) -> ProcessInstance:
    """Return the last sub-process to a city."""
    child: ProcessInstance = process.children.filter(correlation_key=city).latest("pk")
    return child


def look(process: ProcessInstance, city: str) -> None:
    """Decide for the leg to a city; nothing is run."""
    child = leg_to(process, city)
    decide(child.pk, visit(child, "look").pk, "yes", request=asked())


def looked(process: ProcessInstance, *cities: str) -> ProcessInstance:
    """Let the legs to these cities come to their end, one after the other."""
    for city in cities:
        look(process, city)
        go_on(process)
    return process


def element(process: ProcessInstance, number: int) -> StepRun:
    return process.step_runs.filter(node="leg", item=number).latest("pk")


def arrived(*cities: str, days: int = len(rallies.CITIES)) -> list[str]:
    """Return the results of the legs to some cities of a process of so many nights."""
    return [f"arrived after {days} days to {city}" for city in cities]


def back(*cities: str, days: int) -> list[str]:
    """Return what is undone of the legs to some cities of a process of so many nights."""
    return [f"back from {days} days to {city}" for city in cities]


def gathered(process: ProcessInstance) -> Any:
    return results(process)["gather"]


def rally() -> ProcessInstance:
    """Begin a process of which the legs to two cities run at once, of Kobe, Nara, Osaka, Kyoto and Uji."""
    process = finished(rallies.Rally, "Ito", len(rallies.CITIES))
    assert legs(process) == ["Kobe", "Nara"]
    return process


# Results


def test_each_element_has_a_sub_process_and_their_results_stand_in_its_order() -> None:
    process = finished(rallies.Regretted, "Ito", 3)
    runs = [element(process, number) for number in range(3)]
    begun = [run.child for run in runs if run.child]
    cities = rallies.CITIES[:3]

    assert [child.data["city"] for child in begun] == list(cities)
    assert {child.parent for child in begun} == {process}
    found = [(run.kind, run.status, run.element) for run in runs]
    assert found == [("item", "waiting", city) for city in cities]
    assert (process.status, process.children.count()) == ("waiting", 3)

    looked(process, "Osaka", "Kobe", "Nara")
    assert gathered(process) == arrived("Kobe", "Nara", "Osaka", days=3)
    assert statuses(process)["approve"] == "waiting"


def test_pages_lead_from_an_element_to_its_sub_process_and_back(page_of: Read) -> None:
    process = finished(rallies.Regretted, "Ito", 3)
    nara = leg_to(process, "Nara")
    page = page_of(process, "?step=leg")

    for city in rallies.CITIES[:3]:
        link = f'href="/processes/{leg_to(process, city).pk}/"'
        assert page.count(link) == 2  # its element, and the sub-processes
    assert f'href="/processes/{process.pk}/"' in page_of(nara, "?step=leg")


def test_nothing_else_than_its_end_wakes_the_last_of_them() -> None:
    process = finished(rallies.Regretted, "Ito", 1)

    assert (process.status, legs(process)) == ("waiting", ["Kobe"])
    assert not list(progress())


def test_only_so_many_run_at_once() -> None:
    process = looked(rally(), "Nara")
    assert legs(process) == ["Kobe", "Osaka"]
    looked(process, "Kobe", "Osaka", "Kyoto")
    assert legs(process) == ["Uji"]
    looked(process, "Uji")

    assert gathered(process) == arrived(*rallies.CITIES)
    assert process.children.count() == 5


def test_an_element_may_be_a_dataclass_and_a_sub_process_end_at_once() -> None:
    process = finished(rallies.Crossing, "Ito", 3)

    assert process.status == "completed"
    assert results(process)["add"] == ["1 in Kobe", "2 in Nara", "3 in Osaka"]


def test_without_elements_there_are_no_sub_processes() -> None:
    process = finished(rallies.Rally, "Ito", 0)

    assert gathered(process) == []
    assert not process.children.exists()


@pytest.mark.django_db(transaction=True)
def test_starts_and_ends_at_the_same_moment_are_all_heard_once() -> None:
    process = launch(rallies.Regretted, "Ito", 5)
    assert not raised(together(drain, drain, drain))
    assert sorted(legs(go_on(process))) == sorted(rallies.CITIES)
    for city in rallies.CITIES:
        look(process, city)
    assert not raised(together(drain, drain, drain))

    assert len(gathered(go_on(process))) == 5
    assert (done.count("gather"), process.children.count()) == (1, 5)


# Failures


def test_failures_are_put_up_with_as_far_as_it_says() -> None:
    process = rally()
    operated(cancel, leg_to(process, "Kobe"))
    assert legs(process) == ["Nara"]  # its window has narrowed
    assert (go_on(process).status, statuses(process)["leg"]) == ("waiting", "waiting")
    looked(process, "Nara", "Osaka", "Kyoto", "Uji")

    assert gathered(process) == arrived("Nara", "Osaka", "Kyoto", "Uji")
    assert not Incident.objects.open().exists()


def test_one_failure_too_many_is_an_incident_and_retried_as_a_new_one() -> None:
    process = rally()
    for city in ("Kobe", "Nara"):
        operated(cancel, leg_to(process, city))
    assert go_on(process).status == "failed"
    assert "was cancelled" in complaint(process).message
    assert legs(process) == []
    operated(retry, process)
    assert legs(process) == ["Nara"]
    looked(process, "Nara", "Osaka", "Kyoto", "Uji")

    assert gathered(process) == arrived("Nara", "Osaka", "Kyoto", "Uji")


def test_a_failure_that_is_caught_calls_the_others_off() -> None:
    process = finished(rallies.Wary, "Ito", 3)
    operated(cancel, leg_to(process, "Nara"))

    assert (go_on(process).status, legs(process)) == ("completed", [])
    assert results(process)["give_up"] == "home after 3 days"
    assert sorted(journal.undone) == back("Kobe", "Nara", "Osaka", days=3)


def test_what_a_failure_has_cancelled_begins_anew_in_the_window() -> None:
    process = troubled(rallies.Hurried, "Ito", 4, rest=BAD)
    first = leg_to(process, "Kobe")
    assert decided(process, "approve").status == "failed"
    assert legs(process) == []
    mended(process)
    assert legs(process) == ["Kobe", "Nara"]
    assert leg_to(process, "Kobe") != first
    looked(process, "Kobe", "Nara", "Osaka", "Kyoto")

    assert process.status == "completed"


def test_one_that_went_on_after_a_resumption_may_have_to_wait_for_its_turn() -> None:
    process = finished(rallies.Hurried, "Ito", 4)
    before = process.revision
    operated(resume, looked(process, "Kobe"), before)
    assert legs(process) == ["Nara", "Osaka"]
    faults["rest"] = BAD
    decided(process, "approve")
    mended(process)
    assert sorted(legs(process)) == ["Kobe", "Nara"]
    looked(process, "Kobe", "Nara", "Osaka", "Kyoto")

    assert process.status == "completed"


# Ends


def test_with_the_process_all_of_them_are_cancelled() -> None:
    process = operated(cancel, rally())

    assert (process.status, legs(process)) == ("cancelled", [])
    assert sorted(journal.undone) == back("Kobe", "Nara", days=5)
    assert not StepRun.objects.filter(finished_at=None).exists()


@pytest.mark.django_db(transaction=True)
def test_a_cancellation_while_they_start_or_end_leaves_nothing_behind() -> None:
    for number in range(4):
        journal.forget()
        process = launch(rallies.Regretted, f"P-{number}", 3)
        if number % 2:
            look(go_on(process), "Kobe")
        together(drain, press(cancel, process), drain)

        assert (go_on(process).status, legs(process)) == ("cancelled", [])
        assert not StepRun.objects.filter(finished_at=None).exists()


def test_one_that_is_about_to_start_when_the_process_is_cancelled_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = launch(rallies.Regretted, "Ito", 1)
    original = subprocesses.child_input

    def meanwhile(*given: Any) -> Any:
        cancel(process.pk, request=asked())
        return original(*given)

    monkeypatch.setattr(subprocesses, "child_input", meanwhile)

    assert go_on(process).status == "cancelled"
    assert not process.children.exists()


def test_what_they_did_is_undone_one_by_one_with_each_result() -> None:
    process = finished(rallies.Regretted, "Ito", 2)
    operated(cancel, looked(process, "Nara", "Kobe"))

    kobe, nara = arrived("Kobe", "Nara", days=2)
    assert journal.undone == [f"forget Kobe: {kobe}", f"forget Nara: {nara}"]


# Operators


def test_an_element_that_is_skipped_makes_room_only_if_it_had_a_sub_process() -> None:
    process = rally()
    operated(skip, process, element(process, 3).pk, "on foot")
    assert legs(process) == ["Kobe", "Nara"]  # it had not begun
    operated(skip, process, element(process, 0).pk, "by train")
    assert legs(process) == ["Nara", "Osaka"]
    assert leg_to(process, "Kobe").status == "cancelled"
    looked(process, "Nara", "Osaka", "Uji")

    assert gathered(process)[::3] == ["by train", "on foot"]


def test_it_is_redone_with_new_sub_processes() -> None:
    process = looked(finished(rallies.Regretted, "Ito", 2), "Kobe", "Nara")
    operated(redo, process, "leg")
    assert legs(process) == ["Kobe", "Nara"]
    looked(process, "Kobe", "Nara")

    assert [element(process, number).round for number in (0, 1)] == [2, 2]
    assert process.children.count() == 4
    assert statuses(process)["approve"] == "waiting"


def test_those_that_were_open_at_a_checkpoint_go_on() -> None:
    process = rally()
    before = process.revision
    nara = leg_to(process, "Nara")
    operated(resume, looked(process, "Kobe"), before)
    assert legs(process) == ["Nara", "Osaka"]
    assert element(process, 1).child == nara
    looked(process, "Nara", "Osaka", "Kobe", "Kyoto", "Uji")

    assert gathered(process) == arrived(*rallies.CITIES)


def test_one_that_ended_before_that_could_be_heard_is_heard_after_it() -> None:
    process = rally()
    look(process, "Kobe")
    child = leg_to(process, "Kobe")
    skip(child.pk, visit(child, "arrive").pk, "by train", request=asked())
    assert legs(process) == ["Nara"]
    operated(resume, process, process.revision)

    assert legs(process) == ["Nara", "Osaka"]
    kobe = element(process, 0)
    assert (kobe.child, kobe.result) == (child, "by train")


def test_those_that_began_after_a_checkpoint_are_cancelled() -> None:
    process = operated(resume, rally(), 1)

    assert legs(process) == ["Kobe", "Nara"]
    assert process.children.count() == 4
