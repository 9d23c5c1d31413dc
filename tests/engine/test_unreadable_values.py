"""Stored values that the running code cannot read, as between two releases: they wait for the code that reads them."""

from collections.abc import Callable

import pytest

from orchestrator import start_process
from orchestrator.engine.operations import discard
from orchestrator.models import InboxEvent, Incident, IssuedCommand, ProcessInstance
from orchestrator.testing import run
from orchestrator.workers.database_process import Sweeps
from tests.apps.releases import after, before
from tests.services.doing import did, fresh
from tests.services.releases import deploy, packed, placed, ran, releases, sent, told

__all__ = ["releases"]
pytestmark = pytest.mark.django_db


def test_an_event_with_a_field_more_waits_for_the_code_that_reads_it() -> None:
    order = placed()
    paid = sent(after, after.OrderPaid("O-1", 5, "USD"))
    ran(before)

    assert (fresh(paid).verdict, paid.attempt, fresh(order).step) == (
        "received",
        0,
        "Placed",
    )
    assert told() == (
        "the running code cannot read OrderPaid: currency: Unexpected keyword argument"
    )
    ran(after)
    assert (fresh(paid).verdict, fresh(order).step) == ("moved", "Paid")
    assert not Incident.objects.open().exists()


def test_an_event_with_a_field_less_waits_too() -> None:
    order = placed()
    sent(before, before.OrderPaid("O-1", 5))
    run()
    packed = sent(before, before.OrderPacked("O-1"))
    ran(after)

    assert fresh(packed).verdict == "received"
    assert "cannot read OrderPacked: boxes" in told()
    ran(before)
    assert (fresh(packed).verdict, fresh(order).step) == ("moved", "Packed")


def test_later_events_of_its_process_wait_behind_it() -> None:
    order = placed()
    paid = sent(after, after.OrderPaid("O-1", 5, "USD"))
    packed = sent(before, before.OrderPacked("O-1"))
    for _ in range(3):
        ran(before)
    assert [fresh(one).verdict for one in (paid, packed)] == ["received"] * 2
    assert Incident.objects.open().count() == 1

    did(discard, paid)
    run()
    assert [fresh(one).verdict for one in (paid, packed)] == ["discarded", "parked"]
    assert fresh(order).parked == 1
    assert not Incident.objects.open().exists()


def test_a_field_at_its_default_is_not_stored_and_disturbs_no_older_code() -> None:
    order = placed()
    paid = sent(after, after.OrderPaid("O-1", 5))
    assert paid.body == {"order": "O-1", "cents": 5}
    ran(before)
    assert (fresh(paid).verdict, fresh(order).step) == ("moved", "Paid")


def test_a_repeat_of_an_event_is_known_whether_fields_were_stored_or_not() -> None:
    placed(after)
    first = sent(after, after.OrderPaid("O-1", 5))
    InboxEvent.objects.filter(pk=first.pk).update(  # as an earlier release stored it
        body={"order": "O-1", "cents": 5, "currency": "EUR"}
    )
    again = sent(after, after.OrderPaid("O-1", 5))
    assert (again.pk, again.repeats) == (first.pk, 1)


def test_a_start_that_older_code_cannot_read_waits() -> None:
    start = deploy(before).OrderPlaced("O-1")
    receipt = start_process(before.Order, start, id="placed", source="shop")
    InboxEvent.objects.update(body={"order": "O-1", "shop": "Nara"})
    run()
    assert "cannot read OrderPlaced: shop" in told()
    InboxEvent.objects.update(body={"order": "O-1"})
    ran(before)
    assert ProcessInstance.objects.get(pk=receipt.process_id).step == "Placed"


def test_a_command_that_the_running_code_cannot_read_waits() -> None:
    order = placed(after)
    sent(after, after.OrderPaid("O-1", 5))
    run()
    command = IssuedCommand.objects.get(instance=order)
    assert (command.body, command.status) == ({"order": "O-1", "cents": 5}, "done")
    IssuedCommand.objects.update(status="ready", wake_at=order.started_at, attempt=0)
    ran(before)
    assert (fresh(command).status, command.attempt) == ("ready", 0)
    assert "cannot read Ship: cents" in told()
    ran(after)
    assert fresh(command).status == "done"
    assert not Incident.objects.open().exists()


def test_data_of_another_release_holds_the_events_of_its_process() -> None:
    order = placed(after)
    paid = sent(before, before.OrderPaid("O-1", 5))
    ran(before)
    assert fresh(paid).verdict == "received"
    assert "cannot read order.Data: boxes" in told()
    ran(after)
    assert (fresh(paid).verdict, fresh(order).step) == ("moved", "Paid")


def gone_step(order: ProcessInstance) -> str:
    sent(before, before.OrderHeld("O-1"))
    run()
    sent(before, before.OrderPaid("O-1", 5))
    return "order has no step Held now"


def gone_deadline(order: ProcessInstance) -> str:
    order.step_runs.filter(finished_at=None).update(wake_at=order.started_at)
    return "the step Placed of order has no deadline 1 now"


@pytest.mark.parametrize("gone", [gone_step, gone_deadline])
def test_a_process_manager_waits_for_its_step_and_its_deadline(
    gone: Callable[[ProcessInstance], str],
) -> None:
    order = placed()
    why = gone(order)
    ran(after)
    assert told() == why
    ran(before)
    assert not Incident.objects.open().exists()


def test_an_incident_about_a_deadline_ends_when_its_step_was_left() -> None:
    order = placed()
    why = gone_deadline(order)
    ran(after)
    supervisor = Sweeps("default")
    supervisor.look()
    assert told() == why  # the step still waits

    sent(before, before.OrderPaid("O-1", 5))
    run()
    assert fresh(order).step == "Paid"
    Sweeps("default").look()
    assert not Incident.objects.open().exists()
    assert Incident.objects.get(message=why).resolved_by == "its step was left"


def test_a_step_waits_for_the_code_that_reads_the_result_before_it() -> None:
    parcel = packed(after)
    sent(before, before.OrderPacked("O-1"))
    ran(before)
    label = parcel.step_runs.get(node="label")
    assert (label.status, label.attempt) == ("ready", 0)
    assert told() == (
        "the running code cannot read the result of pack: unit: Unexpected keyword argument"
    )
    ran(after)
    assert fresh(parcel).status == "completed"
    assert not Incident.objects.open().exists()
