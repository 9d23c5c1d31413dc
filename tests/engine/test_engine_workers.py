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
from django.utils import timezone
from redis import Redis
from rq import Callback, Queue, SimpleWorker
from rq.job import Job
from rq.serializers import DefaultSerializer, JSONSerializer

from orchestrator import start_process
from orchestrator.models import (
    Definition,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Worker,
)
from orchestrator.queue import ANSWER, BELL, bell_count
from orchestrator.setup_status import setup_figures
from tests.apps.process_managers.desk import accept, place
from tests.apps.process_managers.messages import (
    Courier,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.services.doing import fresh
from tests.services.patience import A_MINUTE, bar, wait_for
from tests.services.program import environ
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers, hired, said

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("parcels"),
]

Start = Callable[..., Workers]
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
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

    def run(processes: int = 1) -> Workers:
        for name, value in QUICK.items():
            monkeypatch.setenv(name, value)
        return hire(processes)

    with hired() as hire:
        yield run


def log(workers: Workers) -> Callable[[], str]:
    return partial(said, workers)


def order(parcel_id: str = "P-1", note: str = "", **more: Any) -> None:
    event = ParcelOrdered(parcel_id, note=note, **more)
    start_process("shipping", event, id=f"order {parcel_id}", source="shop")


def event_of(parcel_id: str) -> InboxEvent:
    return InboxEvent.objects.get(event_id=f"order {parcel_id}")


def cut() -> None:
    """Cut all connections of the workers, where there are any."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(CUT)


def starts(workers: Workers, number: int) -> None:
    """Wait until so many processes have started."""
    wait_for(lambda: ProcessInstance.objects.count() == number, 5, log(workers))


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
def test_a_definition_changed_under_its_processes_stops_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    place()
    shipping = Definition.objects.get(name="shipping")
    rows, kept = Definition.objects.filter(pk=shipping.pk), shipping.fingerprint
    rows.update(fingerprint="0" * 64)
    workers = Workers(1)
    workers.start()
    wait_for(lambda: not workers.supervisor.alive, 20, log(workers))
    Definition.objects.filter(name="shipping").exclude(pk=shipping.pk).delete()
    rows.update(fingerprint=kept)

    assert workers.supervisor.child.ending == "exit code 1"
    assert "(orchestrator.E005)" in workers.supervisor.log.read_text()


# Working


def test_workers_carry_on_whatever_is_cut_and_stop_at_once(start: Start) -> None:
    workers = start(2)
    wait_for(lambda: setup_figures()["sweep_lag_seconds"] is not None, 5, log(workers))
    found, rows = setup_figures(), Worker.objects.all()
    assert found["workers"] == 2
    assert found["sweep_lag_seconds"] < bar(3)
    assert {row.pid for row in rows} == set(workers.pids)
    assert {row.queue for row in rows} == {"default"}

    order("P-1", courier=Courier.PARTNER)
    starts(workers, 1)
    parcel = ProcessInstance.objects.get()
    accept(parcel, ParcelPacked(3))
    wait_for(lambda: fresh(parcel).data["booking"] == "B-P-1", 5, log(workers))
    assert IssuedCommand.objects.get(type="BookCourier").answer == "HTTP 202"

    places = [f"place {number}" for number in range(20)]
    for where in places:
        accept(parcel, ParcelScanned("P-1", where))
    wait_for(lambda: fresh(parcel).data["place"] == places[-1], 10, log(workers))
    stored = [row.data["place"] for row in parcel.checkpoints.order_by("revision")]
    assert [place for place in stored if place] == places

    for number in (2, 3, 4) if connection.vendor == "postgresql" else ():
        cut()
        order(f"P-{number}")
        starts(workers, number)

    later = timezone.now()
    wait_for(lambda: Worker.objects.filter(seen_at__gt=later).count() == 2, 5)
    os.kill(workers.supervisor.pid, signal.SIGSTOP)  # its last report meets the cut
    cut()
    os.kill(workers.supervisor.pid, signal.SIGTERM)
    os.kill(workers.supervisor.pid, signal.SIGCONT)
    begun = time.monotonic()
    assert workers.stop() == 0
    assert time.monotonic() - begun < bar(3)
    assert not Worker.objects.exists()


def test_work_is_found_without_a_bell_without_redis_and_after_a_worker_was_killed(
    start: Start, valkey: ValkeyServer
) -> None:
    workers = start()
    for number in range(5):
        order(f"P-{number}")
        valkey.forget_everything()
    starts(workers, 5)

    valkey.kill()
    order("P-5")
    starts(workers, 6)
    valkey.start()
    order("P-6")
    starts(workers, 7)
    [pid] = workers.pids

    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: workers.pids not in ([], [pid]), 5, log(workers))
    order("P-7")
    starts(workers, 8)
    wait_for(lambda: {w.pid for w in Worker.objects.all()} == set(workers.pids), 5)


# Only doorbells


def touching(path: Path, serializer: Any, valkey: ValkeyServer, **options: Any) -> str:
    """Puts a job that makes a folder into the workers' queue. Returns its id."""
    with valkey.client() as client:
        queue = Queue("procession", connection=client, serializer=serializer)
        job_id: str = queue.enqueue("os.mkdir", str(path), **options).id
        return job_id


def called_back(job: Job, connection: Redis, *result: Any) -> None:
    """What a forged bell would have called when it ends."""
    connection.set("called back", job.id)


def test_a_job_that_is_no_doorbell_is_refused_and_kept_for_its_owner(
    start: Start, valkey: ValkeyServer, tmp_path: Path
) -> None:
    workers = start()
    refused = {
        touching(tmp_path / name, serializer, valkey, **options)
        for name, serializer, options in (
            ("json", JSONSerializer, {"ttl": 600}),
            ("pickle", DefaultSerializer, {}),
            ("meta", DefaultSerializer, {"meta": {"by": "others"}}),
            ("calls", JSONSerializer, {"on_success": Callback(print)}),
        )
    }
    forged = Callback(f"{__name__}.{called_back.__name__}")
    with valkey.client() as client:
        # RQ's own default queue stays the project's, and a bell calls nobody back.
        default = Queue("default", connection=client, serializer=DefaultSerializer)
        job = default.enqueue("os.mkdir", str(tmp_path / "done"))
        queue = Queue("procession", connection=client, serializer=JSONSerializer)
        calls = {"on_success": forged, "on_failure": forged}
        about = {"job_id": f"{BELL}forged", "result_ttl": 0, **calls}
        bell = queue.enqueue(ANSWER, args=("default",), **about)
        wait_for(lambda: not client.exists(bell.key), A_MINUTE, log(workers))
        assert client.get("called back") is None
        wait_for(lambda: bell_count("default") == 0, 5, log(workers))
        order()
        starts(workers, 1)
        assert default.get_job_ids() == [job.id]
        SimpleWorker([default], connection=client).work(burst=True)

    assert {path.name for path in tmp_path.iterdir()} == {"done"}
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


# Work that dies or hangs


def test_work_that_kills_its_worker_or_overruns_its_time_is_set_aside_alone(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUICK, "PROCESSION_EVENT_TIMEOUT", "1")
    parcel = place("P-booked", Courier.PARTNER, "when booked: hang")
    Group.objects.all().delete()
    accept(parcel, ParcelPacked(3))
    order("P-0", note="die")
    order("P-6", note="hang")
    for number in range(1, 6):
        order(f"P-{number}")
    workers = start()
    wait_for(lambda: Incident.objects.open().count() == 3, 25, log(workers))
    starts(workers, 6)

    neighbours = InboxEvent.objects.filter(verdict="started", owner="")
    assert set(neighbours.values_list("attempt", flat=True)) == {1}
    told = {one.event_id: one.message for one in Incident.objects.open()}
    dead = "the worker died or was killed in each of 2 attempts"
    for event in map(event_of, ("P-0", "P-6")):
        assert event.verdict == "failed"
        assert dead in told[event.pk]
    assert not Group.objects.filter(name__in=["packed P-0", "packed P-6"]).exists()
    command = IssuedCommand.objects.get(type="BookCourier")
    assert (command.status, command.attempt) == ("failed", 3)
    assert dead.removeprefix("the worker ") in command.error
    assert "overran its time and is killed" in log(workers)()
    assert fresh(parcel).status == "failed"


def test_workers_do_not_outlive_their_supervisor(start: Start) -> None:
    workers = start(2)
    children = [psutil.Process(pid) for pid in workers.pids]
    os.kill(workers.supervisor.pid, signal.SIGKILL)

    gone, alive = psutil.wait_procs(children, timeout=A_MINUTE)
    assert (len(gone), alive) == (2, [])


# Stopping


def test_a_stop_waits_no_longer_than_three_seconds_and_charges_nothing(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUICK, "PROCESSION_EVENT_TIMEOUT", "600")
    workers = start(2)
    order("P-1", note="hang")  # now: on SQLite it keeps all others from writing
    wait_for(lambda: event_of("P-1").owner != "", 5, log(workers))
    begun = time.monotonic()

    assert workers.stop() == 0
    assert time.monotonic() - begun < bar(3)  # the step itself would go on for 600 s
    event = event_of("P-1")
    assert (event.owner, event.attempt, event.verdict) == ("", 0, "received")
    assert not Group.objects.exists()
