"""An event that moves nothing now: when it is looked at again, when people are told, and what its preview says."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from pytest_django import Settings

from orchestrator import send_event
from orchestrator.engine.change import offering
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.operations import preview_event, preview_targets
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.tables import events
from orchestrator.models import InboxEvent, Incident, ProcessInstance
from orchestrator.testing import Process, pass_time, run, started
from orchestrator.testing.clock import move_times_back
from tests.apps.process_managers.desk import accept, tell
from tests.apps.process_managers.questions import Again, Answered, Asked, Enquiry
from tests.apps.process_managers.several import (
    Accounts,
    OrderPacked,
    OrderPaid,
    OrderShipped,
    Store,
)
from tests.services.crews import knowing
from tests.services.doing import fresh

pytestmark = pytest.mark.django_db

known = knowing(Accounts, Enquiry, Store)
Patience = Callable[..., None]


@pytest.fixture(scope="module")
def asking(module_db: None, known: None) -> UUID:
    """A process that waits for the answer 1."""
    return started(Enquiry, Asked(1)).id


@pytest.fixture
def enquiry(asking: UUID) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=asking)


@pytest.fixture
def patience(settings: Settings) -> Patience:
    """Return a function that has people told of an event after so many seconds."""

    def is_over_after(seconds: float, **more: object) -> None:
        given = {"PATIENCE_SECONDS": seconds, **more}
        settings.PROCESSION = {**settings.PROCESSION, **given}

    return is_over_after


def told() -> list[str]:
    return list(Incident.objects.open().values_list("message", flat=True))


# Without a process


def send_to_nobody() -> None:
    """Send an event to a process that is not there."""
    send_event(Answered(1), id="1", correlation_key="Zoe")


def look() -> InboxEvent:
    """Have a worker look at the event that is due, once."""
    [claimed] = events.claim("default", "this worker", 1, 10)
    deliver_claimed(claimed.work)
    return fresh(claimed.work)


def test_without_any_patience_people_are_told_at_the_first_look(
    patience: Patience,
) -> None:
    patience(0)
    send_to_nobody()
    look()

    assert told() == [
        "no process takes Answered: there is no enquiry with the key 'Zoe'"
    ]


def test_an_event_is_looked_at_when_its_patience_is_over_though_another_look_is_later(
    patience: Patience,
) -> None:
    patience(0.5)
    send_to_nobody()
    event = look()

    assert event.patience_until is not None
    assert event.wake_at == event.patience_until


def test_the_next_look_is_after_twice_the_time_since_the_look_before() -> None:
    send_to_nobody()
    look()
    move_times_back(timedelta(seconds=10))
    event = look()

    assert event.wake_at is not None
    assert event.handled_at is not None
    assert 20 <= (event.wake_at - event.handled_at).total_seconds() < 30


def test_people_are_told_though_another_event_of_the_same_sender_was_taken(
    patience: Patience,
) -> None:
    patience(0)
    send_event(OrderPaid("1"), id="paid")
    for order in ("1", "2"):
        send_event(OrderShipped(order), id=order)
    pass_time(seconds=5)

    assert sorted(told()) == [
        "no process takes OrderShipped: there is no accounts with the key '2'",
        "no process takes OrderShipped: there is no store with the key '2'",
    ]


def test_an_event_that_another_definition_has_taken_is_kept_and_nobody_is_told(
    patience: Patience,
) -> None:
    """Not at a later look, either."""
    patience(0)
    send_event(OrderPaid("1"), id="paid")
    send_event(OrderShipped("1"), id="shipped")
    pass_time(seconds=5)

    kept = InboxEvent.objects.get(target="store")
    assert (kept.verdict, kept.error, told()) == ("unrouted", "", [])


# Parked


def test_a_parked_event_is_looked_at_when_its_patience_is_over(
    enquiry: ProcessInstance,
) -> None:
    event = tell(enquiry, Answered(7))

    assert event.patience_until is not None
    assert (event.verdict, event.wake_at) == ("parked", event.patience_until)


def test_an_event_of_which_people_were_told_is_offered_in_vain_any_number_of_times(
    enquiry: ProcessInstance, patience: Patience
) -> None:
    patience(0, EVENT_ATTEMPTS=1)
    event = tell(enquiry, Answered(7))
    tell(enquiry, Asked(2))

    assert fresh(event).verdict == "parked"


def test_what_people_were_told_of_an_event_stays_with_it_until_it_is_taken(
    enquiry: ProcessInstance, patience: Patience
) -> None:
    patience(0)
    event = tell(enquiry, Answered(7))
    tell(enquiry, Asked(2))
    said = "Answered is not expected in step Asking"
    assert (fresh(event).error, told()) == (said, [said])

    tell(enquiry, Asked(7))
    assert (fresh(event).verdict, told()) == ("moved", [])


def test_the_reason_is_stored_as_a_template_that_can_be_translated(
    enquiry: ProcessInstance, patience: Patience
) -> None:
    patience(0)
    event = tell(enquiry, Answered(7))

    assert event.text is not None
    assert event.text["template"] == "%(type)s is not expected in step %(step)s"
    assert event.text["values"] == {"type": "Answered", "step": "Asking"}


def test_parked_events_that_the_next_step_ignores_are_settled_one_after_the_other(
    enquiry: ProcessInstance,
) -> None:
    parked = [tell(enquiry, Again()) for _ in range(2)]
    tell(enquiry, Answered(1))

    assert [fresh(event).verdict for event in parked] == ["ignored", "ignored"]
    assert fresh(enquiry).parked == 0


def test_behind_an_event_that_was_offered_in_vain_one_of_its_own_process_is_offered(
    enquiry: ProcessInstance,
) -> None:
    """An event of another process, which this one would take, is between them."""
    other = started(Enquiry, Asked(1, "Bob")).instance
    tell(enquiry, Answered(7))
    tell(other, Answered(2))
    tell(enquiry, Answered(2))
    tell(enquiry, Asked(2))

    assert (enquiry.step, fresh(other).step) == ("Answered", "Asking")


def test_an_event_is_released_where_an_older_one_was_offered_after_its_claim(
    enquiry: ProcessInstance,
) -> None:
    older = tell(enquiry, Again())
    accept(enquiry, Answered(1))
    [claimed] = events.claim("default", "this worker", 1, 10)
    offered = {"wake_at": database_now(), "handled_at": None}
    InboxEvent.objects.filter(pk=older.pk).update(**offered)
    assert not deliver_claimed(claimed.work)

    assert (fresh(claimed.work).owner, claimed.work.attempt) == ("", 0)
    run()
    assert fresh(enquiry).step == "Answered"


def test_the_end_turns_away_all_parked_events_though_a_few_at_a_time(
    enquiry: ProcessInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offering, "ENDED", 1)
    parked = [tell(enquiry, Again()) for _ in range(3)]
    Process(enquiry.pk).cancel()

    assert [fresh(event).verdict for event in parked] == ["unexpected"] * 3


def test_people_are_told_of_an_event_after_the_end_though_another_process_manager_takes_it() -> (
    None
):
    """A process manager says itself which events it ignores."""
    started(Accounts, OrderPaid("1")).send(OrderShipped("1"))
    started(Store, OrderPacked("1"))
    send_event(OrderShipped("1"), id="shipped")
    run()

    assert InboxEvent.objects.get(target="store", event_id="shipped").verdict == "moved"
    assert told() == ["OrderShipped came after the process had ended"]


def test_a_parked_event_whose_process_is_gone_is_counted_nowhere() -> None:
    event = InboxEvent(verdict="parked")

    assert offering.unpark(event, None, database_now()) == []


# Previews


def test_the_preview_says_why_an_event_cannot_be_read() -> None:
    found = [preview for _, _, preview in preview_targets("OrderShipped", {})]

    assert {preview.outcome for preview in found} == {"failed"}
    assert all("order: Field required" in preview.why for preview in found)


def test_the_preview_finds_the_process_that_has_the_key_of_the_event() -> None:
    order = started(Accounts, OrderPaid("1"))
    found = preview_targets("OrderShipped", {"order": "1"})

    assert [(name, process, preview.outcome) for name, process, preview in found] == [
        ("accounts", order.instance, "moved"),
        ("store", None, "unrouted"),
    ]


def test_the_preview_shows_the_data_where_the_event_moves_the_process_and_only_there(
    enquiry: ProcessInstance,
) -> None:
    moved, parked = [
        preview_event("Answered", {"number": number}, enquiry) for number in (1, 7)
    ]

    assert (moved.outcome, dict(moved.before)) == ("moved", enquiry.data)
    assert (parked.outcome, dict(parked.before)) == ("parked", {})
