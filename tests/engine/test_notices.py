"""People are told: what gives rise to a notice, how much stands in one, and when it goes out."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from monitoring.queries.figures import figures
from orchestrator import Permanent, send_event
from orchestrator.engine import operations
from orchestrator.engine.notices import gathering, outages, outbox
from orchestrator.models import (
    FailureGroup,
    InboxEvent,
    Incident,
    Notice,
    Occurrence,
    ProcessInstance,
    QueueOutage,
    Worker,
)
from orchestrator.testing import pass_time
from orchestrator.workers import notifier as notifier_module
from orchestrator.workers.notifier import Notifier
from tests.apps.process_managers.desk import place, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import BookCourier, Courier, ParcelScanned
from tests.services.asking import asked
from tests.services.explained import explained
from tests.services.telling import deliver, due_now, gathered, gathered_items

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
SHIPPING = "shipping"


@pytest.fixture(autouse=True)
def declared(settings: Settings) -> None:
    declare(settings)


def declare(settings: Settings, **more: Any) -> None:
    """Declare one recipient."""
    settings.PROCESSION_NOTICES = {"ops": {"to": ["ops@example.org"], **more}}


def escalate(parcel: ProcessInstance, times: int = 1) -> None:
    for _ in range(times):
        operations.escalate(parcel.pk, request=asked(reason="late"))


@pytest.fixture
def escalated() -> ProcessInstance:
    """Return a process that was escalated; its notice waits to be sent."""
    parcel = place()
    escalate(parcel)
    gathered()
    return parcel


def fail_courier(handler: SetHandler, why: str = "no courier in zone {}") -> None:
    numbers = iter(range(1_000_000))

    def fail(command: BookCourier) -> None:
        raise Permanent(why.format(next(numbers)))

    handler(BookCourier, fail, after_commit=True)


# What gives rise to a notice


def test_an_escalation_is_told_once_with_who_and_why(operator: User) -> None:
    parcel = place()
    request = asked(reason="the customer waits")
    for _ in range(2):  # it is pressed twice
        operations.escalate(parcel.pk, request=request)

    [item] = gathered_items()
    assert item["topics"] == ["escalation"]
    assert item["process_id"] == str(parcel.pk)
    assert (item["correlation_key"], item["step"]) == ("P-1", "Packing")
    assert item["message"] == f"{operator}: the customer waits"
    assert not Occurrence.objects.exists()


def test_each_deadline_is_told_once_when_it_passes_with_the_step_that_was_late() -> (
    None
):
    place("P-1", Courier.OWN)
    pass_time(59 * MINUTE)
    assert gathered_items() == []
    for _ in range(2):
        pass_time(2 * MINUTE)
        [reminded] = gathered_items()
    pass_time(3 * HOUR)

    reminded, escalated = gathered_items()
    assert (reminded["topics"], reminded["step"]) == (["deadline"], "Packing")
    assert escalated["topics"] == ["deadline", "escalation"]  # for whoever wants both
    assert Notice.objects.get().counts == {"deadline": 1, "escalation": 1}
    underway("P-2")
    pass_time(73 * HOUR)
    assert gathered_items()[-1]["step"] == "OnTheWay"


def test_failures_of_one_cause_are_told_as_a_group(handler: SetHandler) -> None:
    fail_courier(handler)
    for number in range(5):
        underway(f"P-{number}", Courier.PARTNER)

    [item] = gathered_items()
    assert (item["topics"], item["state"], item["number"]) == (["failure"], "new", 5)
    assert item["error"] == "orchestrator.exceptions.Permanent"
    assert item["place"].endswith("fail_courier.<locals>.fail")
    assert item["fingerprint"] == Incident.objects.latest("pk").fingerprint
    assert FailureGroup.objects.get().number == 5


def test_of_a_known_group_only_its_growth_is_told(handler: SetHandler) -> None:
    fail_courier(handler)
    underway("P-first", Courier.PARTNER)
    deliver()
    for number in range(8):
        underway(f"P-{number}", Courier.PARTNER)
    assert gathered_items() == []
    underway("P-tenth", Courier.PARTNER)

    [item] = gathered_items()
    assert (item["state"], item["number"]) == ("more", 10)


def test_a_group_that_comes_again_after_a_quiet_day_is_told_again(
    handler: SetHandler,
) -> None:
    fail_courier(handler)
    underway("P-1", Courier.PARTNER)
    deliver()
    FailureGroup.objects.update(last_at=timezone.now() - timedelta(days=2))
    underway("P-2", Courier.PARTNER)

    [item] = gathered_items()
    assert (item["state"], item["number"]) == ("again", 1)
    assert FailureGroup.objects.get().number == 2


def test_an_event_that_nobody_takes_is_a_failure() -> None:
    send_event(
        ParcelScanned("P-1", "Nagoya"), id="e", source="depot", process_id=uuid4()
    )
    pass_time(2 * MINUTE)

    [item] = gathered_items()
    assert (item["topics"], item["kind"]) == (["failure"], "unrouted_event")


@pytest.fixture
def outage() -> Iterator[None]:
    """Let work be due on a queue, with nobody there."""
    scanned = ParcelScanned("P-1", "Nagoya")
    send_event(scanned, id="e", source="depot", process_id=uuid4())
    past = timezone.now() - MINUTE
    InboxEvent.objects.update(queue="mail", wake_at=past)
    yield
    InboxEvent.objects.all().delete()


def time_passes(seconds: float) -> None:
    """Let time pass for what was seen of queues."""
    for one in QueueOutage.objects.all():
        one.since -= timedelta(seconds=seconds)
        one.save()


def a_worker(queue: str) -> None:
    seen = {"started_at": timezone.now(), "seen_at": timezone.now()}
    Worker.objects.create(
        id=queue, supervisor="s", host="h", pid=1, queue=queue, **seen
    )


@pytest.mark.usefixtures("outage")
def test_a_dead_queue_is_told_once_and_again_when_it_is_over() -> None:
    outages.look()
    assert gathered_items() == []
    time_passes(14)
    outages.look()
    assert gathered_items() == []
    time_passes(2)
    for _ in range(3):
        outages.look()
    [item] = gathered_items()
    assert (item["queue"], item["state"]) == ("mail", "dead")
    a_worker("mail")
    for _ in range(3):
        outages.look()

    assert [item["state"] for item in gathered_items()] == ["dead", "back"]
    assert not QueueOutage.objects.exists()


@pytest.mark.usefixtures("outage")
def test_a_queue_that_is_only_restarted_is_not_told_of() -> None:
    outages.look()
    a_worker("mail")
    outages.look()

    assert gathered_items() == []
    assert not QueueOutage.objects.exists()


@pytest.mark.usefixtures("outage")
def test_what_was_seen_long_ago_says_nothing_of_now() -> None:
    outages.look()
    QueueOutage.objects.update(
        since=timezone.now() - HOUR, seen_at=timezone.now() - HOUR
    )
    outages.look()

    assert gathered_items() == []


# Who wants to know


def test_nothing_is_written_where_nobody_is_to_be_told(
    settings: Settings, handler: SetHandler
) -> None:
    settings.PROCESSION_NOTICES = {}
    fail_courier(handler)
    escalate(place("P-1"))
    underway("P-2", Courier.PARTNER)
    pass_time(4 * HOUR)

    assert not Occurrence.objects.exists()


@pytest.mark.parametrize(
    ("about", "found"),
    [
        (["escalation"], {"escalation": 1}),
        (["deadline"], {"deadline": 2}),
        (["failure", "queue"], {}),
    ],
)
def test_each_is_told_what_they_want_to_know(
    about: list[str], found: dict[str, int], settings: Settings
) -> None:
    declare(settings, about=about)
    place()
    pass_time(4 * HOUR)

    assert [notice.counts for notice in gathered()] == ([found] if found else [])


def test_of_other_definitions_nothing_is_told(settings: Settings) -> None:
    parcel = place()
    declare(settings, definitions=["another"])
    escalate(parcel)
    assert not Occurrence.objects.exists()
    declare(settings, definitions=[parcel.name])
    escalate(parcel)

    assert len(gathered_items()) == 1


def test_several_are_told_each_by_their_own_notice(settings: Settings) -> None:
    settings.PROCESSION_NOTICES = {
        "desk": {"to": "desk@example.org", "about": "escalation"},
        "night": {"to": "night@example.org", "definitions": "another"},
        "ops": {"to": "ops@example.org"},
    }
    escalate(place())

    assert [notice.recipient for notice in gathered()] == ["desk", "ops"]


# How much stands in one, and when


def test_what_happens_until_the_next_may_be_sent_is_collected(
    settings: Settings,
) -> None:
    declare(settings, seconds=600)
    parcel = place()
    escalate(parcel)
    assert len(deliver()) == 1
    escalate(parcel, 30)
    assert deliver() == []

    [notice] = gathered()
    assert notice.counts == {"escalation": 30}
    assert len(notice.items) == gathering.SHOWN == 20
    first = Notice.objects.get(status="sent")
    assert first.begun_at
    assert notice.wake_at == first.begun_at + timedelta(seconds=600)
    due_now()
    assert len(deliver()) == 1


def test_a_notice_is_claimed_once_at_once_and_again_under_its_id_if_it_is_lost(
    escalated: ProcessInstance,
) -> None:
    lost = outbox.claim("one")
    assert lost is not None
    assert outbox.claim("other") is None
    due_now()
    again = outbox.claim("other")

    assert again is not None
    assert (again.pk, again.items, again.attempt) == (lost.pk, lost.items, 2)
    assert not outbox.sent(lost)
    assert outbox.sent(again)


def test_more_than_one_transaction_takes_in_is_gathered_in_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gathering, "MOST", 3)
    parcel = place()
    escalate(parcel, 10)

    assert [notice.counts for notice in gathered()] == [{"escalation": 10}]
    assert not Occurrence.objects.exists()


def test_thousands_of_failures_of_a_group_are_one_notice_and_then_a_count() -> None:
    failures(1)
    assert len(deliver()) == 1
    failures(999)
    [notice] = gathered()

    assert (notice.counts, len(notice.items)) == ({"failure": 1}, 1)
    assert (notice.items[0]["state"], notice.items[0]["number"]) == ("more", 1_000)
    assert FailureGroup.objects.get().number == 1_000
    due_now()
    assert len(deliver()) == 1
    assert Notice.objects.filter(status="sent").count() == 2


def test_clocks_that_differ_between_hosts_do_not_change_how_often_it_is_told() -> None:
    parcel = place()
    escalate(parcel)
    deliver()
    last = Notice.objects.get()
    moments = dict.fromkeys(
        ("created_at", "begun_at", "settled_at"), timezone.now() - HOUR
    )
    ahead = UUID(int=2**128 - 1)  # its host's clock is ahead, and with it its id
    Notice.objects.create(id=ahead, recipient="ops", status="sent", **moments)
    escalate(parcel)
    [next_] = gathered()

    assert last.begun_at
    assert next_.wake_at == last.begun_at + timedelta(seconds=300)


def test_a_clock_that_was_set_back_keeps_nobody_from_being_told() -> None:
    parcel = place()
    escalate(parcel)
    deliver()
    ahead = timezone.now() + timedelta(days=365)
    Notice.objects.update(begun_at=ahead, settled_at=ahead)
    escalate(parcel)
    [notice] = gathered()

    assert notice.wake_at
    assert notice.wake_at <= timezone.now() + timedelta(seconds=300)


# One at a time


def test_what_is_for_somebody_whom_only_other_hosts_know_is_left_to_them(
    settings: Settings, escalated: ProcessInstance
) -> None:
    """While new settings are brought to one host after the other, nothing is lost."""
    known = settings.PROCESSION_NOTICES
    settings.PROCESSION_NOTICES = {"others": {"to": "others@example.org"}}
    assert outbox.claim("one") is None
    outbox.give_up_unknown()
    settings.PROCESSION_NOTICES = known

    assert outbox.claim("other") is not None


@pytest.mark.parametrize("status", ["gathering", "sending"])
def test_what_is_for_somebody_whom_nobody_knows_any_more_is_given_up_after_a_day(
    status: str, settings: Settings, escalated: ProcessInstance
) -> None:
    past = timezone.now() - timedelta(hours=25)
    Notice.objects.update(wake_at=past, status=status, error="it answered 500")
    outbox.give_up_unknown()
    assert Notice.objects.get().status == status
    assert figures().untaken_notices == 0
    settings.PROCESSION_NOTICES = {"others": {"to": "others@example.org"}}
    outbox.give_up_unknown()

    notice = Notice.objects.get()
    assert (notice.status, notice.wake_at) == ("given_up", None)
    assert notice.settled_at


def test_what_has_often_been_tried_comes_after_what_has_not(settings: Settings) -> None:
    settings.PROCESSION_NOTICES |= {"away": {"to": "a@example.org", "about": "queue"}}
    now = timezone.now()
    tried = {"status": "sending", "created_at": now, "wake_at": now - HOUR}
    for attempt in (5, 4):
        Notice.objects.create(recipient="away", attempt=attempt, **tried)
    escalate(place())
    gathered()
    claimed = [outbox.claim("one") for _ in range(3)]

    found = [(one.recipient, one.attempt) for one in claimed if one is not None]
    assert found == [("ops", 1), ("away", 5), ("away", 6)]


def test_hundreds_who_are_not_reached_keep_nobody_else_waiting(
    settings: Settings,
) -> None:
    settings.PROCESSION_NOTICES |= {
        f"away{place_}": {"to": "a@example.org", "about": "queue"}
        for place_ in range(120)
    }
    now = timezone.now()
    for place_ in range(120):
        away = {"recipient": f"away{place_}", "created_at": now}
        again, due = now + HOUR, now - HOUR
        Notice.objects.create(**away, status="sending", attempt=1, wake_at=again)
        Notice.objects.create(**away, wake_at=due)
    escalate(place())
    gathered()
    notice = outbox.claim("one")

    assert notice is not None
    assert notice.recipient == "ops"


def test_what_has_been_tried_stays_as_it_is_and_the_next_one_waits_for_it(
    escalated: ProcessInstance,
) -> None:
    parcel = escalated
    first = outbox.claim("one")
    assert first is not None
    outbox.not_sent(first, "no", hopeless=False)
    escalate(parcel, 3)
    [next_] = gathered()
    assert next_.counts == {"escalation": 3}
    Notice.objects.filter(pk=next_.pk).update(wake_at=timezone.now())
    assert outbox.claim("one") is None
    due_now()

    assert [outcome.error for outcome in deliver()] == ["", ""]
    assert Notice.objects.get(pk=first.pk).counts == {"escalation": 1}


def test_it_is_tried_less_and_less_often_and_given_up_in_the_end(
    escalated: ProcessInstance,
) -> None:
    pauses = []
    while (notice := outbox.claim("one")) is not None:
        outbox.not_sent(notice, "no\x00thing", hopeless=False)
        found = Notice.objects.get(pk=notice.pk)
        if found.wake_at is not None:
            pauses.append((found.wake_at - timezone.now()).total_seconds())
        due_now()

    notice = Notice.objects.get()
    assert (notice.status, notice.attempt) == ("given_up", outbox.ATTEMPTS)
    assert [round(pause, -1) for pause in pauses[:5]] == [10, 20, 40, 80, 160]
    assert 8 * 3600 < sum(pauses) < 16 * 3600


def test_a_receiver_may_ask_for_a_longer_pause_but_for_no_more_than_an_hour(
    escalated: ProcessInstance,
) -> None:
    for wanted, seconds in ((120, 120), (10**6, 3600)):
        notice = outbox.claim("one")
        assert notice is not None
        after = timedelta(seconds=wanted)
        outbox.not_sent(notice, "busy", after, hopeless=False)
        wake_at = Notice.objects.get().wake_at
        assert wake_at is not None
        pause = (wake_at - timezone.now()).total_seconds()
        assert pause == pytest.approx(seconds, abs=60)
        due_now()


def test_what_is_long_past_is_forgotten(settings: Settings) -> None:
    settings.PROCESSION = {**settings.PROCESSION, "NOTICE_DAYS": 10}
    escalate(place())
    deliver()
    outbox.forget_old()
    assert Notice.objects.count() == 1
    Notice.objects.update(settled_at=timezone.now() - timedelta(days=11))
    now = timezone.now()
    long_ago = now - timedelta(days=11)
    FailureGroup.objects.create(fingerprint="f", first_at=now, last_at=long_ago)

    assert not outbox.forget_old()
    assert not Notice.objects.exists()
    assert not FailureGroup.objects.exists()


def test_what_is_long_past_is_forgotten_a_part_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbox, "FORGOTTEN_AT_ONCE", 2)
    past = timezone.now() - timedelta(days=1000)
    FailureGroup.objects.bulk_create(
        FailureGroup(fingerprint=str(number), first_at=past, last_at=past)
        for number in range(5)
    )
    left = []
    while outbox.forget_old():
        left.append(FailureGroup.objects.count())

    assert left == [3, 1]
    assert not FailureGroup.objects.exists()


# What it costs


def failures(number: int, of: str = "f") -> None:
    """Have so many failures happen, all of one cause, or each of its own."""
    now = timezone.now()
    Occurrence.objects.bulk_create(
        Occurrence(
            topics="failure", definition=SHIPPING, step="OnTheWay", kind="step_failed",
            message=f"ValueError: {place}", fingerprint=of.format(place), at=now,
        )
        for place in range(number)
    )  # fmt: skip


def test_failures_that_are_all_unlike_each_other_cost_no_question_each(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    failures(400, of="f{}")
    with django_assert_max_num_queries(15):
        gathering.gather()
    failures(400, of="f{}")
    gathering.gather()

    assert FailureGroup.objects.filter(number=2, lately=2, told=1).count() == 400
    [notice] = gathered()
    assert notice.counts == {"failure": 400}


def test_what_came_of_attempts_is_stored_between_two_parts_of_very_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else their claims would run out, and all would be sent once more."""
    monkeypatch.setattr(gathering, "MOST", 1)
    monkeypatch.setattr(notifier_module, "PORTION_SECONDS", 0.0)
    failures(3, of="f{}")
    looks = []
    notifier = Notifier()
    monkeypatch.setattr(notifier, "_send", lambda notice: None)
    monkeypatch.setattr(notifier, "pause", lambda: looks.append("paused"))
    monkeypatch.setattr(
        notifier, "settle", lambda: looks.append(str(Occurrence.objects.count()))
    )
    notifier.run(lambda: "paused" in looks)

    assert looks == ["3", "2", "1", "0", "paused"]


def test_a_machine_without_a_process_to_spare_is_asked_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    escalate(place())
    notifier, paused = Notifier(), []

    def send(notice: Notice) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(notifier, "_send", send)
    monkeypatch.setattr(notifier, "pause", lambda: paused.append(True))
    monkeypatch.setattr("django.db.connections.close_all", lambda: None)
    notifier.run(lambda: bool(paused))

    assert Notice.objects.get().status == "sending"  # until its claim has run out


def test_what_is_due_and_what_is_old_are_found_by_indexes() -> None:
    parcel = place()
    for _ in range(2):
        escalate(parcel)
        deliver()
    due_now()
    with explained() as plans:
        assert outbox.claim("one") is not None
        outbox.forget_old()

    whole = re.compile(r"Seq Scan on orchestrator_|SCAN orchestrator_\w+(?! USING)")
    assert len(plans) > 4
    assert [plan for plan in plans if whole.search(plan)] == []


def test_with_nothing_to_tell_few_questions_are_asked(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    notifier = Notifier()
    with django_assert_max_num_queries(9):
        notifier.look()  # looks for dead queues too, in each table of work
    with django_assert_max_num_queries(3):
        notifier.look()
