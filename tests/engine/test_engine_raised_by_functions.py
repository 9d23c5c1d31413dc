"""An exception out of a function is a failed attempt, whatever its class: it is never taken for the engine's own."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from orchestrator import registry, send_event, start_process
from orchestrator.engine.invariants import violations
from orchestrator.engine.storage import definitions
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import Process, pass_time, registered, run, started
from orchestrator.testing.clock import move_times_back
from tests.apps.patterns.misbehaving import fail_without_words
from tests.apps.process_managers.desk import underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    Courier,
    PackParcel,
    ParcelOrdered,
    ParcelScanned,
)
from tests.apps.raising.processes import (
    OURS,
    WORKFLOWS,
    Begun,
    Caught,
    Deciding,
    Judging,
    Listening,
    Making,
    Name,
    Once,
    Raising,
    Rung,
    Telling,
    Unheard,
    raised,
)
from tests.services.doing import fresh
from tests.services.words import words

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "parcels")]

LONG = timedelta(hours=1)
SPECIAL = words(
    "UnknownEventType UnknownDefinition HandlerMissing LeaseLost KeyTaken InvalidMessage WorkerDied"
)
"""What the engine sets aside, drops or does not try again when it raises it itself."""


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(*WORKFLOWS, Judging):
        yield


def an_hour_later(times: int = 1) -> None:
    """Run what is ready, and again when all the pauses between attempts are over at once."""
    run()
    for _ in range(times):
        move_times_back(LONG)
        run()


def ended(definition: Any, *names: str) -> dict[str, ProcessInstance]:
    """Return processes after an hour in which all their attempts were made."""
    begun = {name: start_process(definition, Name(name)).process_id for name in names}
    an_hour_later()
    return {name: ProcessInstance.objects.get(pk=pk) for name, pk in begun.items()}


def complaint(process: ProcessInstance) -> str:
    return str(Incident.objects.open().get(instance=process).message)


@pytest.mark.parametrize(
    ("definition", "names"),
    [(Raising, list(OURS)), (Deciding, SPECIAL)],
    ids=["step", "predicate"],
)
def test_a_step_or_predicate_that_raises_it_is_tried_again_and_fails(
    definition: Any, names: list[str]
) -> None:
    found = {
        name: (process.status, process.step_runs.get().attempt, complaint(process))
        for name, process in ended(definition, *names).items()
    }

    condition = "decides: " if definition is Deciding else ""
    said = "{0}: {1}out of a function: {0}"
    told = {name: said.format(name, condition) for name in names}
    assert found == {name: ("failed", 2, told[name]) for name in names}


def test_a_step_without_retries_runs_once() -> None:
    visits = [process.step_runs.get() for process in ended(Once, *SPECIAL).values()]

    assert {(visit.status, visit.attempt) for visit in visits} == {("failed", 1)}


def test_it_is_caught_by_its_own_class() -> None:
    for name, process in ended(Caught, *SPECIAL).items():
        mended = process.step_runs.get(node="mend").result
        assert (process.status, mended) == ("completed", name)


def test_a_step_that_names_an_event_nobody_knows_has_failed() -> None:
    process = ended(Telling, "T-1")["T-1"]

    assert process.step_runs.get().attempt == 2
    assert "event type 'NobodyKnowsThis'" in complaint(process)


@pytest.mark.parametrize("name", ["UnknownEventType", "LeaseLost", "KeyTaken"])
def test_a_graph_that_can_not_be_made_again_is_tried_and_shown(name: str) -> None:
    Making.made = 0
    receipt = start_process(Making, Name(name))
    definitions.forget_definitions()
    pass_time(LONG)

    process = ProcessInstance.objects.get(pk=receipt.process_id)
    assert (process.status, process.step_runs.get().attempt) == ("failed", 4)
    assert complaint(process) == f"{name}: out of a function: {name}"
    with pytest.raises(OperationRefused, match=f"{name}: out of a function"):
        Process(process.pk).retry()
    Making.made = -100
    Process(process.pk).retry()
    assert Process(process.pk).status == "completed"


def test_events_stay_parked_without_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    process = started(Listening)
    for number in (8, 9):
        assert process.send(Rung(number)) == "parked"
    with monkeypatch.context() as patch:
        patch.setattr(Listening, "fails", True)
        definitions.forget_definitions()
        process.send(Rung(1))
        pass_time(LONG)
        assert process.status == "failed"
        assert set(process.incidents) == {"ConnectionError: no graph"}
    process.retry()

    assert (process.status, process.result) == ("completed", 1)


def test_the_invariants_are_asked_nevertheless(monkeypatch: pytest.MonkeyPatch) -> None:
    listening, judging = started(Listening), started(Judging, Begun(1))
    assert listening.send(Rung(8)) == judging.send(Rung(8)) == "parked"
    with monkeypatch.context() as patch:
        patch.setattr(Listening, "fails", True)
        definitions.forget_definitions()
        found = violations()
    untold = "its history cannot be told again: ConnectionError: no graph"

    assert found == [f"model: {listening.id}: {untold}"]


def test_a_handler_that_raises_fails_its_event_or_command(handler: SetHandler) -> None:
    def fail(command: PackParcel | BookCourier) -> None:
        if command.parcel_id in SPECIAL:
            raise raised(command.parcel_id)

    handler(BookCourier, fail, after_commit=True, attempts=2)
    for name in SPECIAL:
        underway(name, Courier.PARTNER)
    handler(PackParcel, fail)
    for name in SPECIAL:
        key = f"{name} 2"
        start_process("shipping", ParcelOrdered(name), id=name, correlation_key=key)
    an_hour_later(times=4)

    events = InboxEvent.objects.filter(event_id__in=SPECIAL)
    commands = IssuedCommand.objects.filter(type="BookCourier")
    for found, attempts in (
        (events.values_list("verdict", "attempt"), 5),
        (commands.values_list("status", "attempt"), 2),
    ):
        assert list(found) == [("failed", attempts)] * len(SPECIAL)


@pytest.mark.parametrize("after_commit", [False, True])
def test_an_error_of_a_handler_that_cannot_even_be_told_is_shown(
    handler: SetHandler, *, after_commit: bool
) -> None:
    def fail(command: PackParcel) -> None:
        fail_without_words()

    handler(PackParcel, fail, after_commit=after_commit, attempts=2)
    start_process("shipping", ParcelOrdered("P-1"))
    pass_time(LONG)

    (incident,) = Incident.objects.open()
    assert incident.message == "Unspeakable: its text cannot be had (RuntimeError)"


# What the engine itself misses


def test_what_is_set_aside_shows_on_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    receipt = start_process(Raising, Name("KeyTaken"))
    with monkeypatch.context() as patch:
        patch.delitem(registry.definitions, ("raising", 1))
        pass_time(timedelta(minutes=5))
        incident = Incident.objects.open().get()
        assert incident.kind == "handler_missing"
        assert incident.instance_id == receipt.process_id
        assert StepRun.objects.get().attempt == 0
    pass_time(LONG)

    assert not Incident.objects.open().filter(kind="handler_missing").exists()


def test_an_unknown_event_waits_uncharged_and_shows_on_its_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parcel = underway()
    send_event(ParcelScanned("P-1", "Nagoya"), id="1", process_id=parcel.pk)
    with monkeypatch.context() as patch:
        for definition in registry.definitions.values():
            known = definition.events.items()
            others = {name: event for name, event in known if name != "ParcelScanned"}
            patch.setattr(definition, "events", others)
        for _ in range(7):
            pass_time(timedelta(seconds=31))
        assert Incident.objects.open().get().instance_id == parcel.pk
        assert InboxEvent.objects.get(event_id="1").attempt == 0
    pass_time(LONG)

    assert fresh(parcel).data["place"] == "Nagoya"


# An event that nobody listens to


def test_an_event_that_nobody_listens_to_is_no_error_and_people_are_told() -> None:
    assert send_event(Unheard(7), id="1").verdict == "unrouted"
    assert InboxEvent.objects.get().body == {"number": 7}

    pass_time(timedelta(minutes=5))
    assert Incident.objects.open().get().message.startswith("no process takes Unheard")
