"""S9.5: how many events of each type there are, what became of them, and how long they are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import cycle
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from monitoring.lists.events import event_volume as volumes
from monitoring.lists.events.event_volume import TypeVolume, event_volume
from orchestrator import registry, send_event
from orchestrator.engine.storage.pruning import Pruning
from orchestrator.models import InboxEvent, Verdict
from orchestrator.retention import retention
from orchestrator.testing import run
from orchestrator.testing.clock import move_times_back
from tests.apps.process_managers.desk import tell, underway
from tests.apps.process_managers.messages import ParcelDelivered, ParcelScanned
from tests.apps.process_managers.processes import Shipping
from tests.services.client import Client
from tests.services.explained import explained

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("parcels", "no_events_of_others"),
]


@pytest.fixture
def no_events_of_others() -> Iterator[None]:
    """What a test has put into the table itself is gone before the invariants are asked."""
    yield
    InboxEvent.objects.filter(source="test").delete()


def received(
    type_: str | Iterable[str], times: Iterable[datetime], verdict: str = Verdict.MOVED
) -> None:
    """Have events at these times, of one type or of several in turn."""
    types = cycle([type_] if isinstance(type_, str) else type_)
    one = {"source": "test", "body": {}, "body_hash": "", "verdict": verdict}
    InboxEvent.objects.bulk_create(
        InboxEvent(type=next(types), received_at=at, handled_at=at, **one, **named())
        for at in times
    )


def named() -> dict[str, Any]:
    return {"event_id": str(uuid4()), "process_id": uuid4()}


def of(type_: str, window: str = "day") -> TypeVolume:
    [found] = [row for row in event_volume(window).types if row.type == type_]
    return found


def test_s9_5_each_type_has_its_numbers_of_the_hour_the_day_and_the_week() -> None:
    now = timezone.now()
    received("ParcelScanned", [now - timedelta(days=8)])
    received("ParcelScanned", [now - timedelta(days=6)] * 4)
    received("ParcelScanned", [now - timedelta(hours=5)] * 2, Verdict.REJECTED)
    received("ParcelPacked", [now - timedelta(minutes=50)] * 3)
    received("ParcelScanned", [now - timedelta(minutes=3)])

    scanned, packed = of("ParcelScanned"), of("ParcelPacked")

    assert scanned.received == {"hour": "1", "day": "3", "week": "7"}
    assert packed.received == {"hour": "3", "day": "3", "week": "3"}
    assert scanned.verdicts == [("rejected", "2"), ("moved", "1")]
    assert of("ParcelScanned", "week").verdicts == [("moved", "5"), ("rejected", "2")]
    assert of("ParcelScanned", "hour").verdicts == [("moved", "1")]
    assert (scanned.each[-1], scanned.each[-6], sum(scanned.each)) == (1, 2, 3)
    assert (scanned.problems[-6], sum(scanned.problems)) == (2, 2)


def test_s9_5_types_with_the_most_come_first_and_those_without_any_are_there() -> None:
    now = timezone.now()
    received("ParcelScanned", [now] * 3)
    received("ParcelPacked", [now] * 5)

    names = [row.type for row in event_volume().types]

    assert names[:2] == ["ParcelPacked", "ParcelScanned"]
    assert set(registry.event_types()) <= set(names)
    assert of("ParcelDelivered").received == {"hour": "0", "day": "0", "week": "0"}


def test_s9_5_of_many_a_sample_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where types come in turn, and one of them seldom."""
    monkeypatch.setattr(volumes, "LOOKED_AT", 200)
    monkeypatch.setattr(volumes, "LEAST_SHOWN", 200)
    monkeypatch.setattr(volumes, "SHOWN", 200)
    now = timezone.now()
    turns = (now - timedelta(seconds=3500 - n) for n in range(3200))
    received(["ParcelScanned", "ParcelPacked"], turns)
    received("ParcelDelivered", [now - timedelta(minutes=9)] * 2)

    found = {row.type: row for row in event_volume("hour").types}

    for name in ("ParcelScanned", "ParcelPacked"):
        assert found[name].received["hour"].startswith("≈")
        assert 1200 <= int(found[name].received["hour"][1:]) <= 2200
        assert found[name].verdicts == [("moved", found[name].received["hour"])]
        assert 60 <= sum(found[name].each) <= 200
    assert found["ParcelDelivered"].received["hour"] == "2"


def test_s9_5_only_the_most_frequent_of_many_types_are_estimated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the others a number says "or more", and no line is drawn, which would look like a rise."""
    for name, most in (("LOOKED_AT", 100), ("SHOWN", 20), ("LEAST_SHOWN", 20)):
        monkeypatch.setattr(volumes, name, most)
    monkeypatch.setattr(volumes, "ESTIMATED", 1)
    now = timezone.now()
    for name in ("ParcelScanned", "ParcelPacked"):
        received(name, [now - timedelta(seconds=3500 - n * 11) for n in range(300)])

    rows = {row.type: row for row in event_volume("hour").types}

    estimated = [row for row in rows.values() if row.received["hour"][0] == "≈"]
    assert len(estimated) == 1
    [other] = {"ParcelScanned", "ParcelPacked"} - {row.type for row in estimated}
    assert rows[other].received == dict.fromkeys(("hour", "day", "week"), "100+")
    assert rows[other].verdicts == [("moved", "20+")]
    assert rows[other].each == []


def test_s9_5_it_is_found_along_indexes_alone() -> None:
    received("ParcelScanned", [timezone.now()] * 3)
    with explained() as plans:
        event_volume()
    assert "received_by_type" in "\n".join(plans)
    assert not re.search(
        r"(Seq Scan on|SCAN) orchestrator_inboxevent(?! USING)", "\n".join(plans)
    )


def test_s9_5_only_so_many_types_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volumes, "TYPES", 2)
    found = event_volume()
    assert (len(found.types), found.more) == (2, len(registry.event_types()) - 2)


def test_s9_5_how_long_they_are_kept_is_what_prune_goes_by(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    parcel = underway()
    tell(parcel, ParcelDelivered("P-1"))
    assert of("ParcelDelivered").kept == ["without a limit with shipping"]
    assert of("DepotOpened").kept == ["without a limit where an event handler took it"]

    settings.PROCESSION = {**settings.PROCESSION, "RETENTION_DAYS": 400}
    assert of("ParcelDelivered").kept == ["400 days after the end of shipping"]
    monkeypatch.setattr(Shipping, "retention", timedelta(days=30))
    assert of("ParcelDelivered").kept == ["30 days after the end of shipping"]
    assert of("DepotOpened").kept == ["without a limit where an event handler took it"]

    move_times_back(timedelta(days=29))
    assert Pruning(retention(), "tests", rest=0).run().total() == 0
    move_times_back(timedelta(days=2))
    assert Pruning(retention(), "tests", rest=0).run().total() == 1
    assert not InboxEvent.objects.filter(type="ParcelDelivered").exists()


def test_s9_5_what_no_process_has_is_counted_and_never_removed() -> None:
    send_event(ParcelScanned("P-9", "east"), id="lost", correlation_key="P-9")
    run()
    assert str(event_volume().homeless) == "1"
    move_times_back(timedelta(days=4000))
    run()  # it is given up, and stays
    Pruning({"*": timedelta(days=1)}, "tests", rest=0).run()
    assert str(event_volume().homeless) == "1"


def test_s9_5_it_stands_on_the_page_of_events(viewing: Client) -> None:
    received("ParcelScanned", [timezone.now()] * 3, Verdict.IGNORED)
    received("<b>x</b>&", [timezone.now()])

    text = viewing.read("/events/?tab=parked&volume=week")

    shown = text.partition('id="volume"')[2]
    assert 'href="?type=ParcelScanned"' in shown
    assert 'href="?tab=parked&amp;volume=hour#volume"' in shown
    assert 'volume=week#volume"\n           aria-current="true"' in shown
    assert "<b>x</b>" not in shown
    assert "nothing in the running code knows it" in shown
    assert "without a limit with shipping" in shown
    for odd in ("nothing", "%00", "week&volume=hour", "日"):
        assert viewing.get(f"/events/?volume={odd}").status_code == 200


def test_s9_5_an_open_page_is_not_sent_it_again(viewing: Client) -> None:
    sent = viewing.get("/events/?since=1", headers={"HX-Request": "true"})
    assert b'id="events"' in sent.content
    assert b'id="volume"' not in sent.content
