"""The management commands that look at the engine and feed it: status, send_event."""

import json
from datetime import datetime, timedelta
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from monitoring.attention.health import health
from orchestrator.engine.loops.drain import drain
from orchestrator.models import InboxEvent, ProcessInstance, Worker
from tests.apps.process_managers.desk import accept, place, tell, underway
from tests.apps.process_managers.messages import ParcelDelivered, ParcelScanned
from tests.services.cases import cases
from tests.services.doing import fresh
from tests.services.valkey import ValkeyServer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

ORDER = '{"parcel_id": "P-1", "courier": "own"}'


def run(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def status() -> dict[str, Any]:
    return dict(json.loads(run("status", "--json")))


def shipping() -> dict[str, Any]:
    return next(row for row in status()["definitions"] if row["name"] == "shipping")


# status


def test_status_counts_processes_by_status_and_step() -> None:
    place("P-1")
    underway("P-2")
    tell(underway("P-3"), ParcelDelivered("P-3"))

    assert shipping() == {
        "name": "shipping",
        "version": 1,
        "statuses": {"waiting": 2, "completed": 1},
        "steps": {"Packing": 1, "OnTheWay": 1},
        "at_least": [],
    }


def test_status_reads_well_and_names_what_there_is_not() -> None:
    assert shipping()["statuses"] == {}
    assert status()["sweep_lag_seconds"] is None
    place()

    said = "shipping version 1\n  statuses: waiting 1\n  steps: Packing 1\n"
    assert said in run("status")


def test_status_and_pages_count_workers_that_were_seen_lately(settings: Any) -> None:
    def seen(name: str, at: datetime) -> None:
        about = {"supervisor": "S", "host": "here", "pid": 1, "queue": "default"}
        moments = dict.fromkeys(("started_at", "seen_at", "swept_at"), at)
        Worker.objects.create(id=name, **about, **moments)

    now = timezone.now()
    seen("A", now)
    seen("B", now.replace(year=2020))
    found = status()
    assert found["workers"] == 1
    assert 0 <= found["sweep_lag_seconds"] < 60

    # A supervisor that tells of its workers once a minute lives in between, too.
    rare = {"HEARTBEAT_SECONDS": 60.0, "LEASE_SECONDS": 120.0}
    settings.PROCESSION = {**settings.PROCESSION, **rare}
    seen("C", now - timedelta(seconds=59))
    assert (status()["workers"], health().machinery.workers) == (2, 2)


def test_status_shows_what_is_due_on_each_queue() -> None:
    accept(underway(), ParcelScanned("P-1", "Nagoya"))

    queue = status()["queues"]["default"]
    assert queue["due"] == 1
    assert queue["oldest_seconds"] >= 0
    drain()
    assert status()["queues"]["default"]["due"] == 0


def test_status_says_that_redis_is_away(valkey: ValkeyServer) -> None:
    valkey.stop()

    assert status()["queues"]["default"]["bells"] is None
    assert "Redis is away" in run("status")


# send_event


def test_an_event_is_sent_from_the_command_line_once() -> None:
    said = [run("send_event", "ParcelOrdered", ORDER, "--id", "1") for _ in range(2)]
    receipt = f"receipt {InboxEvent.objects.get().pk}: received"
    assert said == [f"{receipt}\n", f"{receipt}, received before\n"]
    with pytest.raises(CommandError, match="sent event id '1' before with another"):
        run("send_event", "ParcelDelivered", '{"parcel_id": "P-1"}', "--id", "1")
    drain()

    assert ProcessInstance.objects.get().correlation_key == "P-1"
    assert InboxEvent.objects.get().source == "command line"


def test_an_event_is_sent_to_a_process_or_a_key() -> None:
    first, second = place("P-1"), place("P-2")
    for where in (["--process", str(first.pk)], ["--key", "P-2"]):
        run("send_event", "ParcelPacked", '{"weight": 3}', *where)
    drain()

    assert [fresh(parcel).step for parcel in (first, second)] == ["OnTheWay"] * 2


def test_the_data_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    given = BytesIO(b'{"parcel_id": "P-1"}')
    monkeypatch.setattr("sys.stdin", TextIOWrapper(given))
    run("send_event", "ParcelOrdered", "-")

    assert InboxEvent.objects.get().body == {"parcel_id": "P-1"}


DEEP = "[" * 1000 + "]" * 1000


@cases(
    "words, said",
    (["ParcelEaten", "{}"], "knows the event type 'ParcelEaten'"),
    (["ParcelOrdred", "{}"], "did you mean ParcelOrdered?"),
    (["Nonsense", "{}"], "looked into: examples.order_listing, "),
    (["ParcelOrdered", "{}"], "parcel_id: Field required"),
    (["ParcelOrdered", '{"parcel_id": 7}'], "parcel_id: Input should be a valid"),
    (["ParcelOrdered", '{"parcel_id": "P-1", "x": 1}'], "x: Unexpected keyword"),
    (["ParcelOrdered", '{"parcel_id": "P-1", "parcel_id": "P-2"}'], "occurs twice"),
    (["ParcelOrdered", "{parcel_id}"], "not JSON"),
    (["ParcelOrdered", "[]"], "the data must be a JSON object"),
    (["ParcelOrdered", '{"parcel_id": NaN}'], "NaN is not a JSON number"),
    (["ParcelOrdered", '{"parcel_id": "a\\u0000"}'], "NUL"),
    (["ParcelOrdered", '{"parcel_id": "\\ud800"}'], "surrogates"),
    (["ParcelOrdered", f'{{"parcel_id": {DEEP}}}'], "nested deeper than 64"),
    (["ParcelOrdered", '"' + "x" * 1_048_576 + '"'], "larger than 256 KiB"),
    (["ParcelOrdered", "\udcff"], "not UTF-8"),
    (["ParcelOrdered", ORDER, "--process", "7"], "must be a UUID"),
    (["ParcelOrdered", ORDER, "--id", "a\nb"], "no control characters"),
)
def test_bad_input_is_one_line_and_stores_nothing(words: list[str], said: str) -> None:
    with pytest.raises(CommandError) as refused:
        run("send_event", *words)

    line = str(refused.value)
    assert line.startswith("not sent: ")
    assert said in line
    assert (len(line) < 300, line.count("\n")) == (True, 0)
    assert not InboxEvent.objects.exists()
