"""The doorbell: a hint, bounded, and never in the way of a commit; the sweep makes a lost one good."""

import json
from datetime import timedelta
from itertools import count

import pytest
from django.db import transaction
from pytest_django import Settings
from rq import Queue, SimpleWorker
from rq.serializers import JSONSerializer
from rq.worker_registration import WORKERS_BY_QUEUE_KEY

from orchestrator import start_process
from orchestrator.engine.claims.due import due, sweep
from orchestrator.engine.drain import drain
from orchestrator.models import InboxEvent, IssuedCommand, ProcessInstance
from orchestrator.queue import (
    ANSWER,
    BELL_SECONDS,
    _bell,
    _ringing,
    answering,
    depth,
    of_rq,
    ring,
    ring_after_commit,
)
from orchestrator.testing.clock import age
from tests.apps.process_managers.desk import accept, place, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    Courier,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.services.patience import bar, quickest, wait_for
from tests.services.valkey import ValkeyServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]
committing = pytest.mark.django_db(transaction=True)

MANY = 20


# A bell


def test_a_bell_names_one_function_and_carries_a_queues_name(
    valkey: ValkeyServer,
) -> None:
    ring("default")

    with valkey.client() as client:
        [job_id] = client.lrange("rq:queue:procession", 0, -1)
        data = client.hget(b"rq:job:" + job_id, "data")
    assert data is not None
    name, _, args, kwargs = json.loads(_inflated(data))
    assert (name, args, kwargs) == (ANSWER, ["default"], {})


@committing
def test_any_worker_of_rq_answers_a_bell(valkey: ValkeyServer) -> None:
    start_process("shipping", ParcelOrdered("P-1"))
    with valkey.client() as client:
        queue = Queue("procession", connection=client, serializer=JSONSerializer)
        [job] = queue.jobs
        assert job.get_status() == "queued"
        assert 0 < client.ttl(job.key) <= BELL_SECONDS
        worker = SimpleWorker([queue], connection=client, serializer=JSONSerializer)
        worker.work(burst=True)

    assert ProcessInstance.objects.count() == 1
    assert depth("default") == 0


def _inflated(data: bytes) -> bytes:
    import zlib

    try:
        return zlib.decompress(data)
    except zlib.error:
        return data


def test_the_default_queue_is_called_in_rq_as_the_settings_say(
    valkey: ValkeyServer, settings: Settings
) -> None:
    settings.PROCESSION = {**settings.PROCESSION, "DEFAULT_QUEUE": "ours"}
    settings.RQ_QUEUES = {"ours": settings.RQ_QUEUES["procession"]}
    forget_queues()

    ring("default")

    with valkey.client() as client:
        assert client.llen("rq:queue:ours") == 1
        assert not client.exists("rq:queue:default", "rq:queue:procession")
    assert (of_rq("ours"), of_rq("mail")) == ("default", "mail")
    forget_queues()


def forget_queues() -> None:
    """Has this process look again which queues there are, which otherwise takes a new one."""
    _bell.cache_clear()
    _ringing.cache_clear()


def test_while_nobody_answers_one_bell_is_out() -> None:
    for _ in range(MANY):
        ring("default")

    assert depth("default") == 1


def test_no_more_bells_are_out_than_there_are_workers(valkey: ValkeyServer) -> None:
    with valkey.client() as client:
        client.sadd(WORKERS_BY_QUEUE_KEY % "procession", "one", "two", "three")
    for _ in range(MANY):
        ring("default")

    assert depth("default") == 3


def test_a_worker_at_the_queue_rings_for_others_only() -> None:
    with answering("default"):
        ring("default")
        assert depth("default") == 0
        ring("default", others=True)

    assert depth("default") == 1


def test_queues_have_bells_of_their_own() -> None:
    with answering("other"):
        ring("default")

    assert depth("default") == 1


@committing
def test_the_bell_rings_after_the_commit() -> None:
    with transaction.atomic():
        ring_after_commit("default")
        assert depth("default") == 0

    assert depth("default") == 1


@committing
def test_the_bell_does_not_ring_after_a_rollback() -> None:
    with transaction.atomic():
        ring_after_commit("default")
        transaction.set_rollback(True)

    assert depth("default") == 0


@committing
def test_an_event_rings_and_so_does_a_command_for_later(handler: SetHandler) -> None:
    parcel = place("P-1", Courier.PARTNER)
    assert depth("default") == 1
    handler(BookCourier, lambda command: None, after_commit=True)
    accept(parcel, ParcelPacked(3))

    assert depth("default") == 1
    drain()


# Redis is away


@committing
def test_a_commit_does_not_wait_for_a_redis_that_is_away(valkey: ValkeyServer) -> None:
    valkey.stop()
    numbers = count()

    def many() -> None:
        for _ in range(MANY):
            start_process("shipping", ParcelOrdered(f"P-{next(numbers)}"))

    most = bar(2.5)
    assert quickest(many, most) < most
    started = next(numbers)
    assert InboxEvent.objects.count() == started
    drain()
    assert ProcessInstance.objects.count() == started


@committing
def test_one_commit_hardly_notices_that_redis_is_away(valkey: ValkeyServer) -> None:
    numbers = count()

    def one() -> None:
        start_process("shipping", ParcelOrdered(f"P-{next(numbers)}"))

    valkey.stop()
    most = bar(0.5)
    assert quickest(one, most) < most


def test_the_depth_is_unknown_while_redis_is_away(valkey: ValkeyServer) -> None:
    valkey.stop()

    assert depth("default") is None


def test_the_bell_rings_again_once_redis_is_back(valkey: ValkeyServer) -> None:
    valkey.stop()
    ring("default")
    valkey.start()

    def rung() -> bool:
        ring("default")
        return bool(depth("default"))

    wait_for(rung, 5)


@committing
def test_another_callback_still_runs_when_the_bell_fails(valkey: ValkeyServer) -> None:
    told: list[str] = []
    valkey.stop()
    with transaction.atomic():
        ring_after_commit("default")
        transaction.on_commit(lambda: told.append("told"))

    assert told == ["told"]


# The sweep


def test_the_sweep_rings_for_work_that_no_bell_announced(valkey: ValkeyServer) -> None:
    parcel = underway()
    accept(parcel, ParcelScanned("P-1", "Nagoya"))
    valkey.forget_everything()

    assert sweep("default")
    assert depth("default") == 1
    drain()


def test_the_sweep_does_not_ring_for_nothing() -> None:
    place()
    drain()

    assert not sweep("other")
    assert not any(due("default"))


def test_the_sweep_sees_a_lease_that_has_ended_and_runs_nothing_itself() -> None:
    from orchestrator.engine.storage.tables import events

    parcel = underway()
    accept(parcel, ParcelScanned("P-1", "Nagoya"))
    events.claim("default", "A", 8, 10)
    assert not any(due("default"))
    age(timedelta(seconds=11))

    assert sweep("default")
    event = InboxEvent.objects.get(type="ParcelScanned")
    assert (event.verdict, event.attempt, event.owner) == ("received", 1, "A")
    drain()


def test_the_sweep_sees_due_commands_and_deadlines() -> None:
    place()
    assert not any(due("default"))
    age(timedelta(minutes=61))
    assert any(due("default"))
    drain()
    assert not any(due("default"))
    assert not IssuedCommand.objects.exclude(wake_at=None).exists()
