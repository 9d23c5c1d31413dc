"""People are told whatever happens to who tells them, and whoever is told keeps nobody waiting."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from django.db.models import F
from django.utils import timezone
from standardwebhooks.webhooks import Webhook

from examples.order_listing.messages import Destination, ListedOnInternal
from examples.order_listing.orders import place_order
from orchestrator import send_event
from orchestrator.configuration.notice_settings import Recipient
from orchestrator.models import (
    Incident,
    Notice,
    Occurrence,
    ProcessInstance,
    QueueOutage,
)
from orchestrator.workers import send_attempt
from orchestrator.workers.send_attempt import Sending
from tests.services.patience import A_MINUTE, bar, wait_for
from tests.services.program import Program, management_command
from tests.services.receivers import HookReceiver, MailServer
from tests.services.sizes import size
from tests.services.workers import Workers, hired

KILLS = size(3, full=6)
KEY = "whsec_YSBrZXkgZm9yIHRoZSB0ZXN0cywgYW5kIG5vdGhpbmcgZWxzZQ=="


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[HookReceiver]:
    """Declare a receiver, for processes that are started after it."""
    receiver = HookReceiver()
    pager = {"URL": receiver.url, "SECRET": KEY, "SECONDS": "1"}
    for name, value in pager.items():
        monkeypatch.setenv(f"PROCESSION_NOTICE_{name}_PAGER", value)
    monkeypatch.setenv("PROCESSION_SWEEP_SECONDS", "0.05")
    yield receiver
    receiver.stop()


@pytest.fixture
def mail_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    """Declare recipients of mail, for processes that are started after it."""
    server = MailServer()
    monkeypatch.setenv("PROCESSION_SMTP_URL", f"smtp://127.0.0.1:{server.port}")
    monkeypatch.setenv("PROCESSION_NOTICE_TO_DESK", "desk@example.org")
    yield server
    server.stop()


@pytest.fixture
def runners(receiver: HookReceiver) -> Iterator[list[Program]]:
    """Run `notices` twice, beside each other."""
    found = [management_command("notices") for _ in range(2)]
    for runner in found:
        runner.start()
    yield found
    for runner in found:
        runner.stop()


def happened(key: str = "A-1") -> None:
    where = {"definition": "delivery", "process_id": uuid4(), "step": "Packing"}
    Occurrence.objects.create(
        topics="escalation", correlation_key=key, at=timezone.now(), **where
    )


def told(receiver: HookReceiver) -> dict[str, int]:
    """Return how much the notices tell that have arrived, by id; each is the same however often it came."""
    found: dict[str, int] = {}
    for posted in list(receiver.posted):
        data = Webhook(KEY).verify(posted.body, posted.headers)["data"]
        assert found.setdefault(data["id"], data["number"]) == data["number"]
    return found


def states(receiver: HookReceiver) -> list[str]:
    bodies = [json.loads(posted.body)["data"]["items"] for posted in receiver.posted]
    return [item["state"] for items in bodies for item in items]


def posted_to(receiver: HookReceiver) -> None:
    wait_for(lambda: bool(receiver.posted), 10)


def its_time_comes() -> None:
    Notice.objects.open().update(wake_at=timezone.now())


def test_the_workers_tell_people(receiver: HookReceiver, workers: Workers) -> None:
    happened()
    posted_to(receiver)
    wait_for(lambda: Notice.objects.get().status == "sent", 10)

    assert list(told(receiver).values()) == [1]
    assert not Occurrence.objects.exists()


def test_without_anybody_to_tell_nobody_runs_for_it(workers: Workers) -> None:
    wait_for(lambda: bool(workers.pids), 10)

    assert workers.notifier is None


def test_receivers_that_fall_silent_keep_nobody_waiting(
    mail_server: MailServer, receiver: HookReceiver, workers: Workers
) -> None:
    mail_server.silent.set()
    receiver.silent.set()
    happened()
    wait_for(lambda: Notice.objects.filter(status="sending").count() == 2, 10)
    begun = time.monotonic()
    orders = [place_order(Destination.INTERNAL, "50 MWh") for _ in range(20)]
    ids = [order.process_id for order in orders]
    done = ProcessInstance.objects.filter(pk__in=ids, status="completed")
    wait_for(lambda: done.count() == len(ids), 5)

    assert time.monotonic() - begun < bar(5)
    assert Notice.objects.filter(status="sending").count() == 2
    begun = time.monotonic()
    workers.stop()
    assert time.monotonic() - begun < bar(4)


def test_one_silent_receiver_does_not_keep_another_waiting(
    mail_server: MailServer, receiver: HookReceiver, workers: Workers
) -> None:
    mail_server.silent.set()
    happened()
    posted_to(receiver)

    assert Notice.objects.get(recipient="desk").status == "sending"


def test_what_a_killed_sender_was_at_is_sent_again_under_its_id(
    receiver: HookReceiver, workers: Workers
) -> None:
    receiver.silent.set()
    happened()
    posted_to(receiver)
    killed = workers.notifier
    assert killed is not None
    senders = psutil.Process(killed).children()
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: workers.notifier not in (None, killed), 10)
    assert psutil.wait_procs(senders, A_MINUTE)[1] == []
    receiver.silent.clear()
    assert Notice.objects.get().status == "sending"
    its_time_comes()
    wait_for(lambda: Notice.objects.get().status == "sent", 10)

    assert list(told(receiver).values()) == [1]
    assert len(receiver.posted) == 2
    assert Notice.objects.get().attempt == 2


def test_a_frozen_one_is_replaced(receiver: HookReceiver, workers: Workers) -> None:
    wait_for(lambda: workers.notifier is not None, 10)
    still = workers.notifier
    assert still is not None
    os.kill(still, signal.SIGSTOP)
    wait_for(lambda: workers.notifier not in (None, still), 10)
    happened()
    posted_to(receiver)

    assert not psutil.pid_exists(still)


def test_two_side_by_side_send_each_notice_once(
    receiver: HookReceiver, runners: list[Program]
) -> None:
    for number in range(30):
        happened(f"A-{number}")
        time.sleep(0.02)
    wait_for(lambda: sum(told(receiver).values()) == 30, 20)

    assert len(receiver.posted) == len(told(receiver))
    assert [runner.stop() for runner in runners] == [0, 0]


def test_nothing_is_lost_and_nothing_told_twice_however_often_they_are_killed(
    receiver: HookReceiver, runners: list[Program]
) -> None:
    number = size(30, full=2_000)
    for place in range(number):
        happened(f"A-{place}")
        if place % (number // KILLS) == number // KILLS // 2:
            posted_to(receiver)
            runners[place % 2].kill()
            runners[place % 2].start()
            its_time_comes()

    def all_told() -> bool:
        its_time_comes()  # what was held by one that was killed
        return not Occurrence.objects.exists() and not Notice.objects.open().exists()

    wait_for(all_told, 30)

    assert sum(told(receiver).values()) == number
    log = Counter({str(one.pk): one.number for one in Notice.objects.all()})
    assert log == told(receiver)


def test_it_is_told_when_all_workers_are_gone_and_when_they_are_back(
    receiver: HookReceiver, runners: list[Program]
) -> None:
    runners[1].stop()
    place_order(Destination.INTERNAL, "50 MWh")
    wait_for(QueueOutage.objects.exists, 20)
    QueueOutage.objects.update(since=F("since") - timedelta(seconds=20))
    wait_for(lambda: states(receiver) == ["dead"], 20)
    with hired() as hire:
        hire(1)
        wait_for(lambda: states(receiver) == ["dead", "back"], 30)

    assert not QueueOutage.objects.exists()


@pytest.mark.parametrize(
    ("mood", "seconds", "error"),
    [
        ("frozen", 0.3, "it took longer than"),
        ("dying", 30.0, "the process that was sending it has died"),
        ("well", 30.0, ""),
    ],
)
def test_a_channel_of_the_project_s_own_can_keep_nobody_waiting(
    mood: str,
    seconds: float,
    error: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(send_attempt, "SECONDS", seconds)
    room = Recipient(
        channel="tests.apps.own_channel.room.Room",
        options={"file": str(tmp_path / "room"), "mood": mood},
    )
    notice = Notice(recipient="room", counts={}, items=[], created_at=timezone.now())
    attempt = Sending(notice, room)
    wait_for(lambda: attempt.outcome is not None, 10)
    attempt.end()

    assert attempt.outcome is not None
    told = attempt.outcome.error
    assert (told.startswith(error), bool(told)) == (True, bool(error))
    assert not psutil.pid_exists(attempt.pid)


def test_what_fails_at_the_workers_is_told_with_what_it_is(
    receiver: HookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCESSION_PATIENCE_SECONDS", "0")
    for number in range(5):
        listed = ListedOnInternal(f"A-{number}")
        send_event(listed, id=f"listed {number}", process_id=uuid4())
    with hired() as hire:
        hire(1)
        wait_for(lambda: Incident.objects.count() == 5, 20)
        posted_to(receiver)

    [item] = json.loads(receiver.posted[0].body)["data"]["items"]
    assert (item["topics"], item["state"]) == (["failure"], "new")
    assert item["kind"] == "unrouted_event"
    assert item["fingerprint"] == Incident.objects.latest("pk").fingerprint
