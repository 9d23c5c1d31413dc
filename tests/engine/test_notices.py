"""People are told: what gives rise to a notice, how much stands in one, and when it goes out."""

import re
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from monitoring.probes.figures import figures
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
from orchestrator.notices import Item
from orchestrator.testing import pass_time
from orchestrator.workers import notifier as notifier_module
from orchestrator.workers.notifier import Notifier
from tests.apps.process_managers.desk import place, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import BookCourier, Courier, ParcelScanned
from tests.services.cases import cases
from tests.services.doing import did, raising
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
        did(operations.escalate, parcel, reason="late")


@pytest.fixture
def escalated() -> ProcessInstance:
    """Return a process that was escalated; its notice waits to be sent."""
    parcel = place()
    escalate(parcel)
    gathered()
    return parcel


def claimed(by: str = "one") -> Notice:
    notice = outbox.claim(by)
    assert notice is not None
    return notice


def in_seconds(moment: datetime | None) -> float:
    assert moment is not None
    return (moment - timezone.now()).total_seconds()


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


# What gives rise to a notice


def test_an_escalation_is_told_once_with_who_and_why(operator: User) -> None:
    parcel, key = place(), uuid4()
    for _ in range(2):  # it is pressed twice
        did(operations.escalate, parcel, key=key, reason="the customer waits")

    [item] = gathered_items()
    assert item["process_id"] == str(parcel.pk)
    assert item["message"] == f"{operator}: the customer waits"
    found = [item[name] for name in ("topics", "correlation_key", "step")]
    assert found == [["escalation"], "P-1", "Packing"]
    assert not Occurrence.objects.exists()


def test_each_deadline_is_told_once_with_the_step_that_was_late() -> None:
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
    def refuse(command: BookCourier) -> None:
        raise Permanent(f"no courier for {command.parcel_id}")

    handler(BookCourier, refuse, after_commit=True)
    for number in range(5):
        underway(f"P-{number}", Courier.PARTNER)

    [item] = gathered_items()
    assert (item["topics"], item["state"], item["number"]) == (["failure"], "new", 5)
    assert item["error"] == "orchestrator.exceptions.Permanent"
    assert item["place"].endswith("as_a_group.<locals>.refuse")
    assert item["fingerprint"] == Incident.objects.latest("pk").fingerprint
    assert FailureGroup.objects.get().number == 5


def test_a_group_that_comes_again_after_a_quiet_day_is_told_again() -> None:
    failures(1)
    deliver()
    FailureGroup.objects.update(last_at=timezone.now() - timedelta(days=2))
    failures(1)

    [item] = gathered_items()
    assert (item["state"], item["number"]) == ("again", 1)
    assert FailureGroup.objects.get().number == 2


def nobody_takes() -> None:
    """Send an event to a process that is not there."""
    scanned = ParcelScanned("P-1", "Nagoya")
    send_event(scanned, id="e", source="depot", process_id=uuid4())


def test_an_event_that_nobody_takes_is_a_failure() -> None:
    nobody_takes()
    pass_time(2 * MINUTE)

    [item] = gathered_items()
    assert (item["topics"], item["kind"]) == (["failure"], "unrouted_event")


def test_a_release_without_texts_reads_and_writes_the_same_notices() -> None:
    state = MigrationLoader(connection).project_state(("orchestrator", "0029_texts"))
    former: Any = state.apps.get_model("orchestrator", "Notice")
    nobody_takes()
    pass_time(2 * MINUTE)
    [notice] = gathered()
    row = former.objects.get()
    [item] = row.items
    assert item.keys() == {one.name for one in fields(Item)} - {"text", "url"}
    row.save()
    notice.refresh_from_db()
    assert notice.texts[item["message"]]["values"]["type"] == "ParcelScanned"
    columns = former.objects.values().get()
    former.objects.all().delete()
    former.objects.create(**columns)

    escalate(place())
    failures(1)
    [notice] = gathered()
    assert notice.texts == {}
    assert len(notice.items) == 3


@pytest.fixture
def outage() -> Iterator[None]:
    """Let work be due on a queue, with nobody there."""
    nobody_takes()
    past = timezone.now() - MINUTE
    InboxEvent.objects.update(queue="mail", wake_at=past)
    yield
    InboxEvent.objects.all().delete()


def look(times: int = 1) -> list[str]:
    """Look so often for dead queues; return what is told of them."""
    for _ in range(times):
        outages.check_queues()
    return [f"{item['queue']} is {item['state']}" for item in gathered_items()]


def time_passes(seconds: float) -> None:
    """Let time pass for what was seen of queues."""
    for one in QueueOutage.objects.all():
        one.since -= timedelta(seconds=seconds)
        one.save()


def a_worker(queue: str) -> None:
    moments = dict.fromkeys(("started_at", "seen_at"), timezone.now())
    about = {"supervisor": "s", "host": "h", "pid": 1, "queue": queue}
    Worker.objects.create(id=queue, **about, **moments)


@pytest.mark.usefixtures("outage")
def test_a_dead_queue_is_told_once_and_again_when_it_is_over() -> None:
    assert look() == []
    time_passes(14)
    assert look() == []
    time_passes(2)
    assert look(3) == ["mail is dead"]
    a_worker("mail")

    assert look(3) == ["mail is dead", "mail is back"]
    assert not QueueOutage.objects.exists()


@pytest.mark.usefixtures("outage")
def test_a_queue_that_is_only_restarted_is_not_told_of() -> None:
    look()
    a_worker("mail")

    assert look() == []
    assert not QueueOutage.objects.exists()


@pytest.mark.usefixtures("outage")
def test_what_was_seen_long_ago_says_nothing_of_now() -> None:
    look()
    past = timezone.now() - HOUR
    QueueOutage.objects.update(since=past, seen_at=past)

    assert look() == []


# Who wants to know


def test_nothing_is_written_for_nobody(settings: Settings, handler: SetHandler) -> None:
    settings.PROCESSION_NOTICES = {}
    escalate(place("P-1"))
    handler(BookCourier, raising(Permanent("no")), after_commit=True)
    underway("P-2", Courier.PARTNER)
    pass_time(4 * HOUR)

    assert not Occurrence.objects.exists()


@cases(
    "wanted, found",
    ({"about": ["escalation"]}, [{"escalation": 1}]),
    ({"about": ["deadline"]}, [{"deadline": 2}]),
    ({"about": ["failure", "queue"]}, []),
    ({"definitions": ["another"]}, []),
    ({"definitions": [SHIPPING]}, [{"deadline": 1, "escalation": 1}]),
)
def test_each_is_told_what_they_want_to_know(
    wanted: dict[str, list[str]], found: list[dict[str, int]], settings: Settings
) -> None:
    declare(settings, **wanted)
    place()
    pass_time(4 * HOUR)
    assert Occurrence.objects.exists() == bool(found)

    assert [notice.counts for notice in gathered()] == found


def test_several_are_told_each_by_their_own_notice(settings: Settings) -> None:
    settings.PROCESSION_NOTICES = {
        "desk": {"to": "desk@example.org", "about": "escalation"},
        "night": {"to": "night@example.org", "definitions": "another"},
        "ops": {"to": "ops@example.org"},
    }
    escalate(place())

    assert [notice.recipient for notice in gathered()] == ["desk", "ops"]


# How much stands in one, and when


def test_what_happens_until_the_next_is_sent_is_collected(settings: Settings) -> None:
    declare(settings, seconds=600)
    parcel = place()
    escalate(parcel)
    assert len(deliver()) == 1
    escalate(parcel, 30)
    assert deliver() == []

    [notice] = gathered()
    assert notice.counts == {"escalation": 30}
    assert len(notice.items) == gathering.SHOWN == 20
    begun_at = Notice.objects.get(status="sent").begun_at
    assert begun_at
    assert notice.wake_at == begun_at + timedelta(seconds=600)
    due_now()
    assert len(deliver()) == 1


def test_a_lost_notice_is_claimed_again_by_its_id(escalated: ProcessInstance) -> None:
    lost = claimed()
    assert outbox.claim("other") is None
    due_now()
    again = claimed("other")

    assert (again.pk, again.items, again.attempt) == (lost.pk, lost.items, 2)
    assert not outbox.mark_sent(lost)
    assert outbox.mark_sent(again)


def test_very_much_is_gathered_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "MOST", 3)
    escalate(place(), 10)

    assert [notice.counts for notice in gathered()] == [{"escalation": 10}]
    assert not Occurrence.objects.exists()


def test_thousands_of_failures_of_a_group_are_one_notice_and_then_its_growth() -> None:
    failures(1)
    assert len(deliver()) == 1
    failures(8)
    assert gathered() == []
    failures(991)
    [notice] = gathered()

    [item] = notice.items
    assert (item["state"], item["number"]) == ("more", 1_000)
    assert notice.counts == {"failure": 1}
    assert FailureGroup.objects.get().number == 1_000
    due_now()
    assert len(deliver()) == 1
    assert Notice.objects.filter(status="sent").count() == 2


def test_clocks_may_differ_between_hosts(escalated: ProcessInstance) -> None:
    deliver()
    last = Notice.objects.get()
    past = timezone.now() - HOUR
    moments = dict.fromkeys(("created_at", "begun_at", "settled_at"), past)
    ahead = UUID(int=2**128 - 1)  # its host's clock is ahead, and with it its id
    Notice.objects.create(id=ahead, recipient="ops", status="sent", **moments)
    escalate(escalated)
    [next_] = gathered()

    assert last.begun_at
    assert next_.wake_at == last.begun_at + timedelta(seconds=300)


def test_a_clock_set_back_keeps_nobody_untold(escalated: ProcessInstance) -> None:
    deliver()
    ahead = timezone.now() + timedelta(days=365)
    Notice.objects.update(begun_at=ahead, settled_at=ahead)
    escalate(escalated)
    [notice] = gathered()

    assert in_seconds(notice.wake_at) <= 300


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

    claimed("other")


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


def others(settings: Settings, number: int, *notices: dict[str, Any]) -> None:
    """Have notices to so many others, who are not reached, beside one to whoever is told of an escalation."""
    now = timezone.now()
    for name in [f"away{place_}" for place_ in range(number)]:
        settings.PROCESSION_NOTICES[name] = {"to": "a@example.org", "about": "queue"}
        for notice in notices:
            due = {"created_at": now, "wake_at": now - HOUR, **notice}
            Notice.objects.create(recipient=name, **due)
    escalate(place())
    gathered()


def test_what_has_often_been_tried_comes_after_what_has_not(settings: Settings) -> None:
    tried = [{"status": "sending", "attempt": attempt} for attempt in (5, 4)]
    others(settings, 1, *tried)
    found = [(one.recipient, one.attempt) for one in (claimed(), claimed(), claimed())]

    assert found == [("ops", 1), ("away0", 5), ("away0", 6)]


def test_hundreds_who_are_not_reached_keep_nobody_waiting(settings: Settings) -> None:
    later = {"status": "sending", "attempt": 1, "wake_at": timezone.now() + HOUR}
    others(settings, 120, later, {})

    assert claimed().recipient == "ops"


def test_what_was_tried_stays_and_the_next_waits(escalated: ProcessInstance) -> None:
    first = claimed()
    outbox.mark_not_sent(first, "no", hopeless=False)
    escalate(escalated, 3)
    [next_] = gathered()
    assert next_.counts == {"escalation": 3}
    Notice.objects.filter(pk=next_.pk).update(wake_at=timezone.now())
    assert outbox.claim("one") is None
    due_now()

    assert [outcome.error for outcome in deliver()] == ["", ""]
    assert Notice.objects.get(pk=first.pk).counts == {"escalation": 1}


def test_it_is_tried_ever_less_often_and_given_up(escalated: ProcessInstance) -> None:
    pauses = []
    while (notice := outbox.claim("one")) is not None:
        outbox.mark_not_sent(notice, "no\x00thing", hopeless=False)
        found = Notice.objects.get(pk=notice.pk)
        if found.wake_at is not None:
            pauses.append(in_seconds(found.wake_at))
        due_now()

    notice = Notice.objects.get()
    assert (notice.status, notice.attempt) == ("given_up", outbox.ATTEMPTS)
    assert [round(pause, -1) for pause in pauses[:5]] == [10, 20, 40, 80, 160]
    assert 8 * 3600 < sum(pauses) < 16 * 3600


def test_a_receiver_may_ask_for_an_hour_at_most(escalated: ProcessInstance) -> None:
    for wanted, seconds in ((120, 120), (10**6, 3600)):
        after = timedelta(seconds=wanted)
        outbox.mark_not_sent(claimed(), "busy", after, hopeless=False)
        pause = in_seconds(Notice.objects.get().wake_at)
        assert pause == pytest.approx(seconds, abs=60)
        due_now()


def test_what_is_long_past_is_forgotten(settings: Settings) -> None:
    settings.PROCESSION = {**settings.PROCESSION, "NOTICE_DAYS": 10}
    escalate(place())
    deliver()
    outbox.forget_old()
    assert Notice.objects.count() == 1
    now = timezone.now()
    long_ago = now - timedelta(days=11)
    Notice.objects.update(settled_at=long_ago)
    FailureGroup.objects.create(fingerprint="f", first_at=now, last_at=long_ago)

    assert not outbox.forget_old()
    assert not Notice.objects.exists()
    assert not FailureGroup.objects.exists()


def test_what_is_old_is_forgotten_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_failures_that_are_all_unlike_each_other_cost_no_question_each(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    failures(400, of="f{}")
    with django_assert_max_num_queries(15):
        gathering.gather_notices()
    failures(400, of="f{}")
    gathering.gather_notices()

    assert FailureGroup.objects.filter(number=2, lately=2, told=1).count() == 400
    [notice] = gathered()
    assert notice.counts == {"failure": 400}


def test_outcomes_are_stored_between_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else their claims would run out, and all would be sent once more."""
    monkeypatch.setattr(gathering, "MOST", 1)
    monkeypatch.setattr(notifier_module, "PORTION_SECONDS", 0.0)
    failures(3, of="f{}")
    looks, notifier, left = [], Notifier(), Occurrence.objects
    monkeypatch.setattr(notifier, "_send", lambda notice: None)
    monkeypatch.setattr(notifier, "pause", lambda: looks.append("paused"))
    monkeypatch.setattr(notifier, "settle", lambda: looks.append(str(left.count())))
    notifier.run(lambda: "paused" in looks)

    assert looks == ["3", "2", "1", "0", "paused"]


def test_a_full_machine_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    escalate(place())
    notifier, paused = Notifier(), []
    full = BlockingIOError(11, "Resource temporarily unavailable")
    monkeypatch.setattr(notifier, "_send", raising(full))
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
        claimed()
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
