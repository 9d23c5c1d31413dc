"""The doorbell: a hint, bounded, and never in the way of a commit; the sweep makes a lost one good."""

from datetime import timedelta
from functools import partial
from itertools import count

import pytest
from django.db import transaction
from pytest_django import Settings
from rq import Queue, SimpleWorker
from rq.serializers import JSONSerializer
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from orchestrator import start_process
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.tables import events
from orchestrator.engine.work.claims import find_due, sweep
from orchestrator.models import InboxEvent, IssuedCommand, ProcessInstance
from orchestrator.queue import (
    ANSWER,
    BELL_SECONDS,
    _bell,
    _ring_script,
    bell_count,
    queue_of_rq_name,
    suppress_wakes,
    wake_queue,
    wake_queue_after_commit,
)
from orchestrator.testing.clock import move_times_back
from tests.apps.process_managers.desk import accept, place, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    Courier,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.services.doing import taking
from tests.services.patience import bar, quickest, wait_for
from tests.services.valkey import ValkeyServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]
committing = pytest.mark.django_db(transaction=True)

MANY = 20


# A bell


@committing
def test_a_bell_names_a_queue_and_any_rq_worker_answers(valkey: ValkeyServer) -> None:
    start_process("shipping", ParcelOrdered("P-1"))
    with valkey.client() as client:
        queue = Queue("procession", connection=client, serializer=JSONSerializer)
        [job] = queue.jobs
        named = job.func_name, list(job.args), job.kwargs
        assert named == (ANSWER, ["default"], {})
        assert job.get_status() == "queued"
        assert 0 < client.ttl(job.key) <= BELL_SECONDS
        worker = SimpleWorker([queue], connection=client, serializer=JSONSerializer)
        worker.work(burst=True)

    assert (ProcessInstance.objects.count(), bell_count("default")) == (1, 0)


def test_the_default_queue_is_called_as_the_settings_say(
    valkey: ValkeyServer, settings: Settings
) -> None:
    settings.PROCESSION = {**settings.PROCESSION, "DEFAULT_QUEUE": "ours"}
    settings.RQ_QUEUES = {"ours": settings.RQ_QUEUES["procession"]}
    forget_queues()

    wake_queue("default")

    with valkey.client() as client:
        assert client.llen("rq:queue:ours") == 1
        assert not client.exists("rq:queue:default", "rq:queue:procession")
    assert (queue_of_rq_name("ours"), queue_of_rq_name("mail")) == ("default", "mail")
    forget_queues()


def forget_queues() -> None:
    """Has this process look again which queues there are, which otherwise takes a new one."""
    _bell.cache_clear()
    _ring_script.cache_clear()


def test_no_more_bells_are_out_than_workers_or_one(valkey: ValkeyServer) -> None:
    with suppress_wakes("default"):
        wake_queue("default")
        assert bell_count("default") == 0
        wake_queue("default", others=True)
        assert bell_count("default") == 1
    valkey.forget_everything()
    with suppress_wakes("other"):  # each queue has bells of its own
        for _ in range(MANY):
            wake_queue("default")
    assert bell_count("default") == 1

    with valkey.client() as client:
        client.sadd(WORKERS_BY_QUEUE_KEY % "procession", "one", "two", "three")
    for _ in range(MANY):
        wake_queue("default")
    assert bell_count("default") == 3


@committing
def test_a_bell_rings_after_a_commit(handler: SetHandler, valkey: ValkeyServer) -> None:
    for undone in (True, False):
        with transaction.atomic():
            wake_queue_after_commit("default")
            assert bell_count("default") == 0
            transaction.set_rollback(undone)
        assert bell_count("default") == (0 if undone else 1)

    valkey.forget_everything()
    parcel = place("P-1", Courier.PARTNER)
    assert bell_count("default") == 1
    handler(BookCourier, taking, after_commit=True)
    accept(parcel, ParcelPacked(3))  # it issues a command for later
    assert bell_count("default") == 1
    drain()


# Redis is away


@committing
def test_a_commit_does_not_wait_for_a_redis_that_is_away(valkey: ValkeyServer) -> None:
    valkey.stop()
    assert bell_count("default") is None
    numbers, told = count(), list[str]()

    def start(times: int) -> None:
        for _ in range(times):
            start_process("shipping", ParcelOrdered(f"P-{next(numbers)}"))

    for times, seconds in ((1, 0.5), (MANY, 2.5)):
        most = bar(seconds)
        assert quickest(partial(start, times), most) < most
    with transaction.atomic():
        wake_queue_after_commit("default")
        transaction.on_commit(lambda: told.append("told"))
    assert told == ["told"]
    begun = next(numbers)
    assert InboxEvent.objects.count() == begun
    drain()
    assert ProcessInstance.objects.count() == begun

    valkey.start()

    def rung() -> bool:
        wake_queue("default")
        return bool(bell_count("default"))

    wait_for(rung, 5)


# The sweep


def test_the_sweep_rings_for_work_that_no_bell_announced(valkey: ValkeyServer) -> None:
    accept(underway(), ParcelScanned("P-1", "Nagoya"))
    valkey.forget_everything()

    assert sweep("default")
    assert bell_count("default") == 1
    drain()


def test_the_sweep_sees_a_lease_that_has_ended_and_runs_nothing_itself() -> None:
    accept(underway(), ParcelScanned("P-1", "Nagoya"))
    events.claim("default", "A", 8, 10)
    assert not any(find_due("default"))
    move_times_back(timedelta(seconds=11))

    assert sweep("default")
    event = InboxEvent.objects.get(type="ParcelScanned")
    assert (event.verdict, event.attempt, event.owner) == ("received", 1, "A")
    drain()


def test_the_sweep_sees_due_deadlines_and_does_not_ring_for_nothing() -> None:
    place()
    assert not sweep("other")
    assert not any(find_due("default"))
    move_times_back(timedelta(minutes=61))
    assert any(find_due("default"))
    drain()
    assert not any(find_due("default"))
    assert not IssuedCommand.objects.exclude(wake_at=None).exists()
