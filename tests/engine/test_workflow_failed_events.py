"""An event that cannot be delivered to a workflow: it stands failed until it is seen to, and so does its whole."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from orchestrator.definition import Event, Failure, Workflow, catch, run, then, wait
from orchestrator.engine import operations
from orchestrator.exceptions import SubprocessFailed
from orchestrator.models import InboxEvent, Incident, ProcessInstance, StepRun, Verdict
from orchestrator.testing import Process, pass_time, started
from tests.services.asking import asked
from tests.services.operated import knowing

pytestmark = pytest.mark.django_db


class Weighed(Event):
    grams: int


scales = {"broken": True}


def is_heavy(event: Weighed) -> bool:
    if scales["broken"]:
        raise ValueError("the scales are broken")
    return event.grams > 10


def label(parcel: Weighed) -> int:
    return parcel.grams


def ship() -> str:
    return "shipped"


def leave(error: Failure) -> str:
    assert error.child is not None
    return f"{error.child.step}: {error.child.type}: {error.child.message}"


class Weighing(Workflow):
    flow = (then(wait(Weighed, "on_scales", is_heavy, gives="parcel"), label),)


weighing = run(Weighing, "weighing")


class Shipment(Workflow):
    flow = (then(weighing, ship),)


class PatientShipment(Workflow):
    flow = (then(weighing, ship), catch(weighing, error=SubprocessFailed, to=leave))


known = knowing(Weighing, Shipment, PatientShipment)


@pytest.fixture(autouse=True)
def broken_scales() -> None:
    scales["broken"] = True


def weighed(process: Process) -> Process:
    """Send an event that fails in all its attempts."""
    process.send(Weighed(20))
    assert process.status == "retrying"
    pass_time(hours=1)
    return process


def failed_part(definition: type[Workflow] = Shipment) -> tuple[Process, Process]:
    """Start a shipment, and have the event of its part fail; return both."""
    shipment = started(definition)
    return shipment, weighed(shipment.children[0])


def weighed_again(process: Process) -> None:
    """Send another event, which does not fail."""
    scales["broken"] = False
    process.send(Weighed(30))


def act(operation: Any, *target: Any) -> None:
    operation(*target, request=asked())
    pass_time(seconds=1)


def discard() -> None:
    """Discard the event that has failed."""
    act(operations.discard, InboxEvent.objects.get(verdict=Verdict.FAILED).pk)


def test_a_workflow_stands_failed_until_its_event_is_retried() -> None:
    weighing = weighed(started(Weighing))

    assert weighing.status == "failed"
    assert weighing.incidents == ["ValueError: the scales are broken"]
    scales["broken"] = False
    weighing.retry()
    assert (weighing.status, weighing.result) == ("completed", 20)
    assert weighing.incidents == []


def test_it_stays_so_while_other_things_move_it_until_the_event_is_discarded() -> None:
    weighing = weighed(started(Weighing))
    act(operations.escalate, weighing.id)
    assert weighing.status == "failed"
    discard()

    assert (weighing.status, weighing.incidents) == ("waiting", [])


@pytest.mark.parametrize("pressed", [0, 1], ids=["of the whole", "of the part"])
def test_it_reaches_the_whole_and_a_retry_revives_both(pressed: int) -> None:
    shipment, weighing = both = failed_part()

    assert (shipment.status, weighing.status) == ("failed", "failed")
    where = f"the sub-process weighing {weighing.id} failed at Weighed"
    said = f"SubprocessFailed: {where}: ValueError: the scales are broken"
    assert shipment.incidents == [said]
    scales["broken"] = False
    both[pressed].retry()
    assert (shipment.status, shipment.result) == ("completed", "shipped")
    assert not Incident.objects.open().exists()


def test_the_whole_waits_on_when_the_event_is_discarded() -> None:
    shipment, weighing = failed_part()
    discard()

    assert (shipment.status, weighing.status) == ("waiting", "waiting")
    weighed_again(weighing)
    assert shipment.status == "completed"


def test_a_rule_of_the_whole_takes_it_and_closes_the_part() -> None:
    shipment, weighing = failed_part(PatientShipment)

    assert (shipment.status, weighing.status) == ("completed", "cancelled")
    assert shipment.result == {"leave": "Weighed: ValueError: the scales are broken"}
    assert not Incident.objects.open().exists()


def test_another_event_may_help_both_and_the_one_that_failed_is_shown_then() -> None:
    shipment, weighing = failed_part()
    weighed_again(weighing)

    assert (shipment.status, weighing.result) == ("completed", 30)
    assert (weighing.status, len(weighing.incidents)) == ("completed", 1)


@pytest.mark.parametrize("paused", [False, True])
def test_an_event_that_failed_needs_nobody_after_a_cancellation(paused: bool) -> None:
    weighing = weighed(started(Weighing))
    if paused:
        act(operations.pause, weighing.id, True)
    weighing.cancel()

    assert (weighing.status, weighing.incidents) == ("cancelled", [])
    told = Incident.objects.exclude(resolved_at=None)
    assert [(o.kind, o.resolution) for o in told] == [("event_failed", "cancelled")]
    assert InboxEvent.objects.filter(verdict=Verdict.FAILED).count() == 1


def test_what_failed_under_an_earlier_version_reaches_its_whole_by_migrating() -> None:
    shipment, weighing = failed_part()
    ProcessInstance.objects.update(status="waiting")
    StepRun.objects.filter(status="failed").update(status="waiting", error="")
    Incident.objects.filter(instance=shipment.id).delete()

    migration = import_module("orchestrator.migrations.0010_failed_events")
    migration.tell(apps, SimpleNamespace(connection=connection))
    pass_time(seconds=1)

    assert (shipment.status, weighing.status) == ("failed", "failed")
    assert len(shipment.incidents) == 1
