"""What machines ask of a web server: whether it lives, whether the set-up is ready, and its metrics."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Q
from django.test import override_settings
from django.urls import include, path
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from examples.order_listing.messages import Destination, ListedOnInternal
from examples.order_listing.orders import place_order
from monitoring import asking, metrics, readiness
from monitoring.asking import TimedQuestion
from orchestrator import send_event
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import run
from tests.services.client import Client
from tests.services.hired import hire

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "a-token-for-metrics-that-is-long-enough"
BEARER = {"Authorization": f"Bearer {TOKEN}"}

urlpatterns = [path("ops/", include("monitoring.urls"))]


@pytest.fixture
def token() -> Iterator[None]:
    with override_settings(PROCESSION_METRICS_TOKEN=TOKEN):
        yield


def test_a_process_that_answers_lives_and_asks_nobody(
    client: Client, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        answer = client.get("/livez")

    assert (answer.status_code, answer.json()) == (200, {"live": True})
    assert not answer.cookies


# Ready


def test_where_nothing_is_due_no_worker_is_needed(client: Client) -> None:
    answer = client.get("/readyz")

    parts = {"database": "up", "redis": "up", "workers": "up"}
    assert (answer.status_code, answer.json()) == (200, {"ready": True, **parts})


def test_due_work_needs_a_worker_of_its_queue_that_lives(client: Client) -> None:
    place_order(Destination.INTERNAL, "50 MWh")
    hire("another")
    hire(seconds_ago=60)
    assert client.get("/readyz").json()["workers"] == "down"
    assert client.get("/readyz").status_code == 503

    hire()

    assert client.get("/readyz").status_code == 200


def test_work_on_a_queue_that_nobody_set_up_is_seen(client: Client) -> None:
    place_order(Destination.INTERNAL, "50 MWh")
    InboxEvent.objects.update(queue="forgotten")
    hire()

    assert client.get("/readyz").json()["workers"] == "down"


def test_work_that_waits_outside_is_that_of_the_plain_queues_workers(
    client: Client,
) -> None:
    place_order(Destination.INTERNAL, "50 MWh")
    InboxEvent.objects.update(queue="default:calls")
    assert client.get("/readyz").status_code == 503

    hire()

    assert client.get("/readyz").status_code == 200


def test_a_part_that_does_not_matter_is_left_out(client: Client) -> None:
    place_order(Destination.INTERNAL, "50 MWh")

    answer = client.get("/readyz?exclude=workers")

    parts = {"database": "up", "redis": "up"}
    assert (answer.status_code, answer.json()) == (200, {"ready": True, **parts})
    assert client.get("/readyz?exclude=everything").status_code == 400


def test_a_part_that_is_silent_is_asked_once_and_holds_nobody_up(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    speaks = threading.Event()

    def silent() -> bool:
        asked.append(1)
        return speaks.wait(60)

    monkeypatch.setattr(asking, "PATIENCE", 0.2)
    monkeypatch.setattr(readiness, "_redis", TimedQuestion(silent))
    since = time.monotonic()
    answers = [client.get("/readyz").json()["redis"] for _ in range(20)]
    lasted = time.monotonic() - since
    speaks.set()

    assert (set(answers), len(asked)) == ({"down"}, 1)
    assert lasted < 30  # and not the 60 that one alone would take


@pytest.mark.parametrize("part", ["_queues", "_redis"])
def test_a_setting_that_is_wrong_is_a_part_that_is_down(
    part: str, client: Client, token: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong() -> Any:
        raise KeyError("procession")

    monkeypatch.setattr(readiness, part, TimedQuestion(wrong))
    monkeypatch.setattr(metrics, "_figures", TimedQuestion(wrong))

    answer = client.get("/readyz")
    told = client.get("/metrics", headers=BEARER)

    down = "workers" if part == "_queues" else "redis"
    assert (answer.status_code, answer.json()[down]) == (503, "down")
    assert told.status_code == 200
    assert f'procession_up{{part="{down}"}} 0.0' in told.content.decode()


def test_probes_live_under_any_prefix(client: Client) -> None:
    with override_settings(ROOT_URLCONF=__name__):
        assert client.get("/ops/livez").status_code == 200
        assert client.get("/ops/readyz").status_code == 200
        assert client.get("/ops/metrics").status_code == 401


@pytest.mark.parametrize("place", ["/livez", "/readyz", "/metrics"])
def test_probes_are_asked_by_get_and_led_nowhere_else(
    place: str, client: Client
) -> None:
    assert client.post(place).status_code == 405
    assert client.get(f"{place}/").status_code == 404
    with override_settings(SECURE_SSL_REDIRECT=True):
        assert Client().get(place).status_code in (200, 401)


# Metrics


def scraped(client: Client) -> dict[tuple[str, ...], float]:
    """What the metrics say, as Prometheus' own parser reads it: by name and labels."""
    answer = client.get("/metrics", headers=BEARER)
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain; version=")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def test_metrics_are_for_whoever_brings_the_token(client: Client, token: None) -> None:
    wrong = {"Authorization": f"Bearer {TOKEN[:-1]}"}

    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=wrong).status_code == 401
    assert client.get("/metrics", headers={"Authorization": "é"}).status_code == 401
    assert client.get("/metrics", headers=BEARER).status_code == 200


def test_without_a_token_in_the_settings_none_is_right(client: Client) -> None:
    for value in ("Bearer ", "Bearer", ""):
        answer = client.get("/metrics", headers={"Authorization": value})
        assert answer.status_code == 401


def test_metrics_are_for_people_who_may_look_at_processes(
    client: Client, viewer: User, stranger: User
) -> None:
    client.force_login(stranger)
    assert client.get("/metrics").status_code == 403

    client.force_login(viewer)
    assert client.get("/metrics").status_code == 200


def test_metrics_are_what_a_second_count_finds(client: Client, token: None) -> None:
    hire()
    before, rows = scraped(client), counted()
    for destination in (Destination.INTERNAL, Destination.BOTH, Destination.BOTH):
        place_order(destination, "50 MWh")
    run()
    early = place_order(Destination.INTERNAL, "50 MWh")
    send_event(
        ListedOnInternal(early.order_id),
        id="early",
        source="exchange",
        process_id=early.process_id,
    )
    InboxEvent.objects.filter(event_id="early").update(
        wake_at=timezone.now() - timedelta(seconds=20)
    )
    claimed = StepRun.objects.filter(wake_at__isnull=False).first()
    assert claimed is not None
    StepRun.objects.filter(pk=claimed.pk).update(
        owner="somebody", wake_at=timezone.now() + timedelta(seconds=9)
    )

    found = scraped(client)

    added = {kind: number - rows[kind] for kind, number in counted().items()}
    for kind, number in added.items():
        name = f"procession_{kind}_total"
        assert found[name,] - before.get((name,), 0) == number, kind
    assert added["transitions"] > 3
    for (name, *labels), value in found.items():
        if name == "procession_live_processes":
            live = ProcessInstance.objects.live().filter(name=labels[0])
            assert value == live.filter(status=labels[1]).count() > 0
    assert found["procession_open_incidents",] == Incident.objects.open().count() > 0
    due = Q(wake_at__lte=timezone.now())
    work = sum(
        table._default_manager.filter(due).count()
        for table in (InboxEvent, IssuedCommand, StepRun)
    )
    assert found["procession_due_work", "default"] == work > 1
    assert 20 <= found["procession_due_age_seconds", "default"] < 900
    assert found["procession_leases", "default"] == 1
    assert found["procession_workers", "default"] == 1
    assert found["procession_sockets",] == 0
    assert 2 <= found["procession_sweep_age_seconds",] < 900
    assert found["procession_event_seconds", "0.5"] == pytest.approx(middle(), abs=1e-6)
    assert found["procession_up", "redis"] == found["procession_up", "database"] == 1


def counted() -> dict[str, int]:
    """Return how many rows there are of what is numbered."""
    return {
        "transitions": Checkpoint.objects.count(),
        "steps": StepRun.objects.count(),
        "events": InboxEvent.objects.count(),
        "incidents": Incident.objects.count(),
    }


def middle() -> float:
    """Return the median of how long events have taken."""
    taken: list[float] = sorted(
        (handled - received).total_seconds()
        for received, handled in InboxEvent.objects.filter(
            handled_at__isnull=False
        ).values_list("received_at", "handled_at")
        if handled
    )
    return taken[(len(taken) + 1) // 2 - 1]


def test_what_has_been_removed_is_still_counted(client: Client, token: None) -> None:
    send_event(ListedOnInternal("A-1"), id="lost", source="exchange")
    before = scraped(client)["procession_events_total",]

    InboxEvent.objects.all().delete()

    assert scraped(client)["procession_events_total",] == before > 0


def test_without_the_database_metrics_say_so(
    client: Client, token: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> list[str]:
        raise OSError("no route to host")

    monkeypatch.setattr(readiness, "_queues", TimedQuestion(away))

    found = scraped(client)

    assert (found["procession_up", "database"], found["procession_up", "redis"]) == (
        0,
        1,
    )
    assert found["procession_sockets",] == 0
    assert ("procession_transitions_total",) not in found
