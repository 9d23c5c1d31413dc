"""What machines ask of a web server: whether it lives, whether the set-up is ready, and its metrics."""

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import F
from django.urls import include, path
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from examples.order_listing.messages import Destination, ListedOnInternal
from examples.order_listing.orders import place_order
from monitoring.probes import metrics, readiness, timed_questions
from monitoring.probes.timed_questions import TimedQuestion
from orchestrator import __version__, send_event
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import run
from tests.conftest import of
from tests.services.client import Client
from tests.services.hired import hire

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "a-token-for-metrics-that-is-long-enough"
SECOND = timedelta(seconds=1)
BEARER = {"Authorization": f"Bearer {TOKEN}"}

urlpatterns = [path("ops/", include("monitoring.urls"))]


@pytest.fixture
def token(settings: Settings) -> None:
    settings.PROCESSION_METRICS_TOKEN = TOKEN


def ready(client: Client, asked: str = "") -> tuple[int, dict[str, Any]]:
    answer = client.get(f"/readyz{asked}")
    return answer.status_code, answer.json()


UP = {"database": "up", "redis": "up"}


def test_a_process_that_answers_lives_and_asks_nobody(
    client: Client, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(0):
        answer = client.get("/livez")

    assert (answer.status_code, answer.json()) == (200, {"live": True})
    assert not answer.cookies


# Ready


def test_where_nothing_is_due_no_worker_is_needed(client: Client) -> None:
    assert ready(client) == (200, {"ready": True, **UP, "workers": "up"})


def test_due_work_needs_a_worker_of_its_queue_that_lives(client: Client) -> None:
    place_order(Destination.INTERNAL, "50 MWh")
    hire("another")
    hire(seconds_ago=60)
    assert ready(client) == (503, {"ready": False, **UP, "workers": "down"})

    hire()

    assert ready(client)[0] == 200


def test_work_that_waits_outside_is_for_workers_of_its_queue(client: Client) -> None:
    place_order(Destination.INTERNAL, "50 MWh")
    InboxEvent.objects.update(queue="default:calls")
    assert client.get("/readyz").status_code == 503

    hire()

    assert client.get("/readyz").status_code == 200


def test_a_part_that_does_not_matter_is_left_out(client: Client) -> None:
    place_order(Destination.INTERNAL, "50 MWh")

    assert ready(client, "?exclude=workers") == (200, {"ready": True, **UP})
    client.read("/readyz?exclude=everything", status=400)


def test_a_part_that_is_silent_is_asked_once_and_holds_nobody_up(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    speaks = threading.Event()

    def silent() -> bool:
        asked.append(1)
        return speaks.wait(60)

    monkeypatch.setattr(timed_questions, "PATIENCE", 0.2)
    monkeypatch.setattr(readiness, "_redis", TimedQuestion(silent))
    since = time.monotonic()
    answers = {ready(client)[1]["redis"] for _ in range(20)}
    lasted = time.monotonic() - since
    speaks.set()

    assert (answers, len(asked)) == ({"down"}, 1)
    assert lasted < 30  # and not the 60 that one alone would take


@pytest.mark.parametrize(
    ("part", "down"), [("_queues", "workers"), ("_redis", "redis")]
)
def test_a_setting_that_is_wrong_is_a_part_that_is_down(
    part: str, down: str, client: Client, token: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong() -> Any:
        raise KeyError("procession")

    monkeypatch.setattr(readiness, part, TimedQuestion(wrong))
    monkeypatch.setattr(metrics, "_figures", TimedQuestion(wrong))

    status, parts = ready(client)

    assert (status, parts[down]) == (503, "down")
    assert scraped(client)["procession_up", down] == 0


def test_probes_live_under_any_prefix(client: Client, settings: Settings) -> None:
    settings.ROOT_URLCONF = __name__
    for probe, status in (("livez", 200), ("readyz", 200), ("metrics", 401)):
        client.read(f"/ops/{probe}", status=status)


@pytest.mark.parametrize("place", ["/livez", "/readyz", "/metrics"])
def test_probes_are_asked_by_get_and_led_nowhere_else(
    place: str, client: Client, settings: Settings
) -> None:
    assert client.post(place).status_code == 405
    assert client.get(f"{place}/").status_code == 404
    settings.SECURE_SSL_REDIRECT = True
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


@pytest.mark.parametrize(
    ("authorization", "status"),
    [(f"Bearer {TOKEN}", 200), (f"Bearer {TOKEN[:-1]}", 401), ("é", 401), (None, 401)],
)
def test_metrics_are_for_whoever_brings_the_token(
    authorization: str | None, status: int, client: Client, token: None
) -> None:
    about = {"Authorization": authorization} if authorization else {}

    client.read("/metrics", headers=about, status=status)


def test_without_a_token_in_the_settings_none_is_right(client: Client) -> None:
    for value in ("Bearer ", "Bearer", ""):
        client.read("/metrics", headers={"Authorization": value}, status=401)


def test_metrics_are_for_who_may_see_processes(viewing: Client, stranger: User) -> None:
    of(stranger).read("/metrics", status=403)
    viewing.read("/metrics")


def test_metrics_are_what_a_second_count_finds(client: Client, token: None) -> None:
    hire()
    before, rows = scraped(client), counted()
    for destination in (Destination.INTERNAL, Destination.BOTH, Destination.BOTH):
        place_order(destination, "50 MWh")
    run()
    early = place_order(Destination.INTERNAL, "50 MWh")
    event, process = ListedOnInternal(early.order_id), early.process_id
    send_event(event, id="early", source="exchange", process_id=process)
    now = timezone.now()
    InboxEvent.objects.filter(event_id="early").update(wake_at=now - 20 * SECOND)
    claimed = StepRun.objects.exclude(wake_at=None)[:1].values("pk")
    claim = {"owner": "somebody", "wake_at": now + 9 * SECOND}
    StepRun.objects.filter(pk__in=claimed).update(**claim)

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
    tables = (table._default_manager for table in (InboxEvent, IssuedCommand, StepRun))
    work = sum(rows.filter(wake_at__lte=timezone.now()).count() for rows in tables)
    assert found["procession_due_work", "default"] == work > 1
    assert 20 <= found["procession_due_age_seconds", "default"] < 900
    assert found["procession_leases", "default"] == 1
    assert found["procession_workers", "default"] == 1
    assert found["procession_sockets",] == 0
    assert found["procession_build_info", __version__] == 1
    assert 2 <= found["procession_sweep_age_seconds",] < 900
    assert found["procession_event_seconds", "0.5"] == pytest.approx(middle(), abs=1e-6)
    assert found["procession_up", "redis"] == found["procession_up", "database"] == 1


def counted() -> dict[str, int]:
    """Return how many rows there are of what is numbered."""
    tables = (Checkpoint, StepRun, InboxEvent, Incident)
    names = ("transitions", "steps", "events", "incidents")
    counts = (table._default_manager.count() for table in tables)
    return dict(zip(names, counts, strict=True))


def middle() -> float:
    """Return the median of how long events have taken."""
    handled = InboxEvent.objects.exclude(handled_at=None)
    times = handled.values_list(F("handled_at") - F("received_at"), flat=True)
    taken = sorted(time.total_seconds() for time in times)
    return float(taken[(len(taken) + 1) // 2 - 1])


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

    up = (found["procession_up", "database"], found["procession_up", "redis"])
    assert up == (0, 1)
    assert found["procession_sockets",] == 0
    assert ("procession_transitions_total",) not in found


@pytest.mark.django_db
def test_a_page_tells_the_version(operating: Client) -> None:
    assert f"Procession {__version__}</span>" in operating.read("/")
