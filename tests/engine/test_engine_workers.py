"""Real workers under a real supervisor: what they do with work that dies, hangs or is cut off, and how they stop."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import connection
from redis import Redis
from rq import Callback, Queue, SimpleWorker
from rq.job import Job
from rq.serializers import DefaultSerializer, JSONSerializer

from orchestrator import start_process
from orchestrator.models import (
    CommandStatus,
    Definition,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    Verdict,
    Worker,
)
from orchestrator.queue import ANSWER, BELL, depth
from orchestrator.setup_status import status
from tests.apps.process_managers.desk import accept, place, underway
from tests.apps.process_managers.messages import (
    Courier,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.services.patience import A_MINUTE, bar, wait_for
from tests.services.program import environ
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("parcels"),
]

Start = Callable[..., Workers]
QUICK = {
    "PROCESSION_APPS": "tests.apps.process_managers",
    "PROCESSION_BACKOFF_SECONDS": "0.1",
    "PROCESSION_SWEEP_SECONDS": "0.2",
    "PROCESSION_HEARTBEAT_SECONDS": "0.5",
    "PROCESSION_EVENT_ATTEMPTS": "2",
}


@pytest.fixture
def start(valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Return a function that starts workers who know the parcels and lose their patience quickly."""
    started: list[Workers] = []

    def run(processes: int = 1) -> Workers:
        for name, value in QUICK.items():
            monkeypatch.setenv(name, value)
        workers = Workers(processes)
        started.append(workers)
        workers.start()
        wait_for(lambda: Worker.objects.count() == processes, 20, log(workers))
        return workers

    yield run
    for workers in started:
        workers.stop()


def log(workers: Workers) -> Callable[[], str]:
    return lambda: workers.supervisor.log.read_text()[-3000:]


def order(parcel_id: str = "P-1", note: str = "", **more: Any) -> None:
    event = ParcelOrdered(parcel_id, note=note, **more)
    start_process("shipping", event, id=f"order {parcel_id}", source="shop")


def event_of(parcel_id: str) -> InboxEvent:
    return InboxEvent.objects.get(event_id=f"order {parcel_id}")


def verdict_of(parcel_id: str) -> str:
    return str(event_of(parcel_id).verdict)


def started(number: int) -> bool:
    """Whether so many processes have started."""
    return ProcessInstance.objects.count() == number


def taken(parcel_id: str) -> bool:
    """Whether a worker holds the event that starts a parcel's process."""
    return event_of(parcel_id).owner != ""


# Starting

PAGES = """
import sys
import django
django.setup()
from django.core.management import call_command
from orchestrator.management.commands import work
work.supervise = lambda *_: print(*sys.modules)
call_command("work")
"""


@pytest.mark.once
def test_workers_start_without_the_pages_of_the_site() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PAGES],
        cwd=settings.BASE_DIR,
        env={**environ(), "DJANGO_SETTINGS_MODULE": "orchestrator.settings"},
        capture_output=True,
        text=True,
        check=True,
    )

    loaded = set(run.stdout.split())
    assert "orchestrator.workers.supervisor" in loaded
    assert not {"monitoring.views", "orchestrator.urls", "graphviz"} & loaded


@pytest.mark.once
def test_workers_do_not_start_over_a_definition_that_changed_under_its_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    place()
    shipping = Definition.objects.get(name="shipping")
    kept, shipping.fingerprint = shipping.fingerprint, "0" * 64
    shipping.save()
    workers = Workers(1)
    workers.start()
    wait_for(lambda: not workers.supervisor.alive, 20, log(workers))
    Definition.objects.filter(name="shipping").exclude(pk=shipping.pk).delete()
    shipping.fingerprint = kept
    shipping.save()

    assert workers.supervisor.child.ending == "exit code 1"
    assert "(orchestrator.E005)" in log(workers)()


# Working


def test_workers_take_a_process_from_its_start_to_where_it_waits(start: Start) -> None:
    workers = start(2)
    order("P-1", courier=Courier.PARTNER)
    wait_for(lambda: verdict_of("P-1") == Verdict.STARTED, 5, log(workers))
    accept(ProcessInstance.objects.get(), ParcelPacked(3))
    wait_for(
        lambda: ProcessInstance.objects.get().data["booking"] == "B-P-1",
        5,
        log(workers),
    )

    assert IssuedCommand.objects.get(type="BookCourier").answer == "HTTP 202"


def test_workers_are_counted_and_swept_for(start: Start) -> None:
    workers = start(2)
    wait_for(lambda: status()["sweep_lag_seconds"] is not None, 5, log(workers))

    found = status()
    assert found["workers"] == 2
    assert found["sweep_lag_seconds"] < bar(3)
    rows = Worker.objects.all()
    assert {row.pid for row in rows} == set(workers.pids)
    assert {row.queue for row in rows} == {"default"}


def test_work_that_no_bell_announced_is_found(
    start: Start, valkey: ValkeyServer
) -> None:
    workers = start()
    for number in range(5):
        order(f"P-{number}")
        valkey.forget_everything()
    wait_for(
        lambda: ProcessInstance.objects.count() == 5,
        5,
        log(workers),
    )


def test_workers_go_on_without_redis_and_hear_the_bell_when_it_is_back(
    start: Start, valkey: ValkeyServer
) -> None:
    workers = start()
    valkey.kill()
    order("P-1")
    wait_for(lambda: verdict_of("P-1") == Verdict.STARTED, 5, log(workers))
    valkey.start()
    order("P-2")
    wait_for(lambda: verdict_of("P-2") == Verdict.STARTED, 5, log(workers))

    assert len(workers.pids) == 1


# Only doorbells


def touching(path: Path, serializer: Any, valkey: ValkeyServer, **options: Any) -> str:
    """Puts a job that makes a folder into the workers' queue. Returns its id."""
    with valkey.client() as client:
        queue = Queue("procession", connection=client, serializer=serializer)
        job_id: str = queue.enqueue("os.mkdir", str(path), **options).id
        return job_id


def test_a_job_that_is_no_doorbell_is_refused_and_kept_for_its_owner(
    start: Start, valkey: ValkeyServer, tmp_path: Path
) -> None:
    workers = start()
    refused = {
        touching(tmp_path / "json", JSONSerializer, valkey, ttl=600),
        touching(tmp_path / "pickle", DefaultSerializer, valkey),
        touching(tmp_path / "meta", DefaultSerializer, valkey, meta={"by": "others"}),
        touching(
            tmp_path / "calls", JSONSerializer, valkey, on_success=Callback(print)
        ),
    }
    wait_for(lambda: depth("default") == 0, 5, log(workers))
    order()
    wait_for(lambda: verdict_of("P-1") == Verdict.STARTED, 5, log(workers))

    assert not any(tmp_path.iterdir())
    assert log(workers)().count("refused a job that") == len(refused)
    assert len(workers.pids) == 1
    workers.stop()
    with valkey.client() as client:
        queue = Queue("procession", connection=client, serializer=DefaultSerializer)
        assert set(queue.failed_job_registry.get_job_ids(cleanup=False)) == refused
        assert not client.llen(queue.intermediate_queue_key)
        for job_id in refused:
            queue.failed_job_registry.requeue(job_id)
        own = SimpleWorker([queue], connection=client, serializer=DefaultSerializer)
        own.work(burst=True)
    assert {path.name for path in tmp_path.iterdir()} >= {"pickle", "meta"}


def test_rqs_own_default_queue_stays_the_projects(
    start: Start, valkey: ValkeyServer, tmp_path: Path
) -> None:
    with valkey.client() as client:
        queue = Queue("default", connection=client, serializer=DefaultSerializer)
        job = queue.enqueue("os.mkdir", str(tmp_path / "done"))
        workers = start()
        order()
        wait_for(lambda: verdict_of("P-1") == Verdict.STARTED, 5, log(workers))

        assert queue.get_job_ids() == [job.id]
        SimpleWorker([queue], connection=client).work(burst=True)
    assert (tmp_path / "done").is_dir()


def called_back(job: Job, connection: Redis, *result: Any) -> None:
    """What a forged bell would have called when it ends."""
    connection.set("called back", job.id)


def test_a_bell_calls_nobody_back(start: Start, valkey: ValkeyServer) -> None:
    workers = start()
    forged = Callback(f"{__name__}.{called_back.__name__}")
    with valkey.client() as client:
        queue = Queue("procession", connection=client, serializer=JSONSerializer)
        bell = queue.enqueue(
            ANSWER,
            args=("default",),
            job_id=f"{BELL}forged",
            result_ttl=0,
            on_success=forged,
            on_failure=forged,
        )
        wait_for(lambda: not client.exists(bell.key), A_MINUTE, log(workers))

        assert client.get("called back") is None


# Work that dies or hangs


def test_work_that_kills_its_worker_is_set_aside_and_its_neighbours_are_done(
    start: Start,
) -> None:
    order("P-0", note="die")
    for number in range(1, 6):
        order(f"P-{number}")
    workers = start()
    wait_for(lambda: verdict_of("P-0") == Verdict.FAILED, 15, log(workers))
    wait_for(lambda: ProcessInstance.objects.count() == 5, 5, log(workers))

    neighbours = InboxEvent.objects.exclude(event_id="order P-0")
    assert set(neighbours.values_list("verdict", "attempt")) == {(Verdict.STARTED, 1)}
    incident = Incident.objects.open().get()
    assert "the worker died or was killed in each of 2 attempts" in incident.message
    assert incident.event_id == event_of("P-0").pk


@pytest.mark.once
def test_a_command_that_overruns_its_time_is_killed_and_in_the_end_an_incident(
    start: Start,
) -> None:
    parcel = place("P-1", Courier.PARTNER, "when booked: hang")
    accept(parcel, ParcelPacked(3))
    workers = start()
    wait_for(lambda: Incident.objects.open().exists(), 15, log(workers))

    command = IssuedCommand.objects.get(type="BookCourier")
    assert command.status == CommandStatus.FAILED
    assert command.attempt == 3
    assert "died or was killed in each of 2 attempts" in command.error
    assert "overran its time and is killed" in log(workers)()
    parcel.refresh_from_db()
    assert parcel.status == Status.FAILED


def test_an_event_that_overruns_its_time_is_killed_and_rolled_back(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUICK, "PROCESSION_EVENT_TIMEOUT", "1")
    order("P-1", note="hang")
    workers = start()
    wait_for(lambda: verdict_of("P-1") == Verdict.FAILED, 15, log(workers))

    assert not ProcessInstance.objects.exists()
    assert not Group.objects.exists()


def test_a_worker_that_is_killed_is_replaced_and_its_work_taken_over(
    start: Start,
) -> None:
    workers = start()
    [pid] = workers.pids
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: workers.pids not in ([], [pid]), 5, log(workers))
    order()
    wait_for(lambda: verdict_of("P-1") == Verdict.STARTED, 5, log(workers))

    wait_for(lambda: {w.pid for w in Worker.objects.all()} == set(workers.pids), 5)


def test_workers_do_not_outlive_their_supervisor(start: Start) -> None:
    workers = start(2)
    children = [psutil.Process(pid) for pid in workers.pids]
    os.kill(workers.supervisor.pid, signal.SIGKILL)

    gone, alive = psutil.wait_procs(children, timeout=A_MINUTE)
    assert (len(gone), alive) == (2, [])


# Stopping


def test_idle_workers_stop_at_once(start: Start) -> None:
    workers = start(2)
    begun = time.monotonic()

    assert workers.stop() == 0
    assert time.monotonic() - begun < bar(3)
    assert not Worker.objects.exists()


def test_a_stop_waits_no_longer_than_three_seconds_and_charges_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUICK, "PROCESSION_EVENT_TIMEOUT", "600")
    workers = start(2)
    order("P-1", note="hang")  # now: on SQLite it keeps all others from writing
    wait_for(lambda: taken("P-1"), 5, log(workers))
    begun = time.monotonic()

    assert workers.stop() == 0
    assert time.monotonic() - begun < bar(3)  # the step itself would go on for 600 s
    event = event_of("P-1")
    assert (event.owner, event.attempt, event.verdict) == ("", 0, Verdict.RECEIVED)
    assert not Group.objects.exists()


# The database goes away


def test_workers_whose_connections_were_cut_go_on(start: Start) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no connections to cut")
    workers = start(2)
    for number in (0, 1, 2):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        order(f"P-{number}")
        wait_for(partial(started, number + 1), 5, log(workers))


def test_scans_of_one_process_go_through_two_workers_in_order(start: Start) -> None:
    parcel = underway()
    workers = start(2)
    for number in range(20):
        accept(parcel, ParcelScanned("P-1", f"place {number}"))
    last = "place 19"
    wait_for(
        lambda: ProcessInstance.objects.get().data["place"] == last, 10, log(workers)
    )

    parcel.refresh_from_db()
    assert parcel.revision == 22
    places = [row.data["place"] for row in parcel.checkpoints.order_by("revision")]
    assert places[2:] == [f"place {number}" for number in range(20)]
