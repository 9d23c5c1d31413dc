"""S9, events: searched, each with its verdict in words; what nothing took is given to a process, with a preview."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from monitoring.lists.events import event_search
from monitoring.lists.events.event_search import (
    PAGE,
    EventFilters,
    event_outcomes,
    search_events,
)
from monitoring.lists.events.possible_processes import possible_processes
from orchestrator import send_event
from orchestrator.engine.events.preview import preview_event
from orchestrator.engine.operations import cancel, deliver, pause
from orchestrator.exceptions import OperationRefused, StaleRevision
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    Verdict,
)
from orchestrator.testing import pass_time, run
from tests.apps.process_managers.desk import place, tell
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    CountScan,
    DepotOpened,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.processes import Shipping
from tests.services.asking import asked
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.reading import all_rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]


def parcel(key: str = "P-1") -> ProcessInstance:
    """A parcel that is on its way."""
    process = place(key)
    tell(process, ParcelPacked(3), id=f"{key} packed")
    return process


def lost(key: str = "P-?", id: str = "lost", **fields: Any) -> InboxEvent:
    """A scan of a parcel that nobody knows."""
    told = ParcelScanned(fields.get("parcel_id", key), fields.get("place", "east"))
    number = send_event(told, id=id, correlation_key=key).number
    run()
    return InboxEvent.objects.get(pk=number)


def test_s9_2_an_event_is_delivered_to_a_chosen_process_once_however_often_it_is_asked(
    operator: User,
) -> None:
    process, event = parcel(), lost()
    assert event.verdict == Verdict.UNROUTED
    request = asked(expected_revision=process.revision)

    for _ in range(2):
        row = deliver(event.pk, str(process.pk), request=request)
        run()

    event.refresh_from_db()
    found = (event.verdict, event.process_id, event.error)
    assert found == (Verdict.MOVED, process.pk, "")
    assert row == OperatorAction.objects.get()
    assert (row.instance_id, row.after["process"]) == (process.pk, str(process.pk))
    assert IssuedCommand.objects.filter(type="CountScan").count() == 1


def test_s9_2_what_cannot_be_delivered_is_refused_with_why(stranger: User) -> None:
    process, event, other = parcel(), lost(), lost(id="other")
    InboxEvent.objects.filter(pk=other.pk).update(type="DepotOpened")

    def refused(
        said: str, to: object = process.pk, event: InboxEvent = event, **request: Any
    ) -> None:
        with pytest.raises(OperationRefused, match=said):
            deliver(event.pk, str(to), request=asked(**request))

    with pytest.raises(StaleRevision, match="has changed since"):
        deliver(event.pk, str(process.pk), request=asked(expected_revision=1))
    refused("there is no process x", "x")
    refused("there is no process", uuid4())
    refused("may not", actor=stranger)
    refused("shipping takes no DepotOpened", event=other)
    cancel(process.pk, request=asked())
    refused("has ended")
    event.refresh_from_db()
    assert event.verdict == Verdict.UNROUTED


def test_s9_2_an_event_that_was_parked_with_another_process_leaves_it() -> None:
    first, target = parcel("P-1"), place("P-3")
    event = tell(first, ParcelPacked(3))
    assert first.parked == 1

    deliver(event.pk, str(target.pk), request=asked())
    run()

    first.refresh_from_db()
    target.refresh_from_db()
    assert (first.parked, target.step) == (0, "OnTheWay")


def test_s9_2_a_preview_says_what_comes_and_does_nothing(handler: SetHandler) -> None:
    process = parcel()
    called: list[Any] = []
    handler(CountScan, called.append)
    there = Checkpoint.objects.count(), InboxEvent.objects.count()

    found = preview_event(
        "ParcelScanned", {"parcel_id": "P-1", "place": "east"}, process
    )
    ending = preview_event("ParcelDelivered", {"parcel_id": "P-1"}, process)
    broken = preview_event("ParcelScanned", {"place": 5}, process)

    assert (found.outcome, found.to, found.commands) == ("moved", "", ("CountScan",))
    assert (found.before["place"], found.after["place"]) == ("", "east")
    assert (ending.outcome, ending.to) == ("moved", "Delivered")
    assert preview_event("ParcelPacked", {"weight": 1}, process).outcome == "parked"
    assert (
        preview_event("DepotOpened", {"depot": "east"}, process).outcome == "not_known"
    )
    assert broken.outcome == "failed"
    assert "parcel_id" in broken.why or "place" in broken.why
    assert called == []
    assert (Checkpoint.objects.count(), InboxEvent.objects.count()) == there
    process.refresh_from_db()
    assert process.revision == 2


def test_s9_2_previews_undo_predicates_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    process, decide = parcel(), Shipping.decide

    def writing(*given: Any, **more: Any) -> Any:
        User.objects.create_user("planted")
        return decide(*given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Shipping, "decide", writing)
        found = preview_event("ParcelDelivered", {"parcel_id": "P-1"}, process)

    assert found.outcome == "moved"
    assert not User.objects.filter(username="planted").exists()


def test_s9_2_of_a_process_that_ended_or_is_paused_a_preview_says_so() -> None:
    process = parcel()
    for action, outcome in ((pause, "paused"), (cancel, "ended")):
        action(process.pk, request=asked())
        process.refresh_from_db()
        body = {"parcel_id": "P-1"}
        assert preview_event("ParcelDelivered", body, process).outcome == outcome


def test_s9_2_the_nearest_processes_have_its_key_or_its_data() -> None:
    by_key, other = parcel("P-1"), parcel("P-2")
    of_key = lost("P-9", id="a", parcel_id="P-1")
    tell(other, ParcelScanned("P-2", "harbour"))
    of_data = lost("P-9", id="b", parcel_id="P-8", place="harbour")
    of_nothing = lost("P-9", id="c", parcel_id="P-7", place="nowhere")

    found = possible_processes([of_key, of_data, of_nothing])

    expected = {
        of_key.pk: [(by_key.pk, "same key")],
        of_data.pk: [(other.pk, "same place")],
        of_nothing.pk: [],
    }
    assert expected == {
        pk: [(one.process.pk, one.why) for one in those] for pk, those in found.items()
    }
    assert "would take it" in found[of_data.pk][0].said


def test_s9_2_a_process_with_a_similar_key_is_near() -> None:
    process = parcel("PARCEL-2026-0017")
    parcel("PARCEL-1999-8888")
    misspelled = lost("PARCEL-2026-0O17", place="nowhere")
    [near] = possible_processes([misspelled])[misspelled.pk]
    assert (near.process.pk, near.why) == (process.pk, "a similar key")


@cases("by", "id", "key")
def test_s9_2_an_event_is_delivered_to_a_process_that_a_person_names(
    by: str, operating: Client
) -> None:
    process, event = parcel("P-1"), lost("Q-9", place="nowhere")
    page = operating.read("/events/")
    [link] = re.findall(r'href="(\?q=lost&amp;deliver=\d+)#deliver"', page)
    named = str(process.pk) if by == "id" else " P-1 "
    text = operating.read(f"/events/{unescape(link)}&target={named}")
    [section] = re.findall(
        r'<section class="card" id="deliver">.*?</section>', text, re.DOTALL
    )
    assert "On the way would take it." in section
    assert "It would issue CountScan" in " ".join(section.split())
    assert f"deliver-named-{event.pk}-{process.pk.hex}" in section
    assert "would take it" not in operating.read(f"/events/{unescape(link)}")


def test_s9_2_a_key_that_reads_as_an_id_is_found(operating: Client) -> None:
    process, event = parcel(key := str(uuid4())), lost("Q-9", place="nowhere")
    text = operating.read("/events/", {"deliver": event.pk, "target": key})
    assert f"deliver-named-{event.pk}-{process.pk.hex}" in text


def test_s9_2_long_keys_are_not_compared() -> None:
    parcel("P" * 140)
    event = lost("P" * 139, place="nowhere")
    assert possible_processes([event])[event.pk] == []


def test_s9_2_a_named_process_that_cannot_take_it_says_why(operating: Client) -> None:
    process, event = parcel("P-1"), lost("Q-9", place="nowhere")
    cancel(process.pk, request=asked())

    def named(target: str, deliver: object = event.pk) -> str:
        return operating.read("/events/", {"deliver": deliver, "target": target})

    assert "No process has the id or key &lt;P-7&gt;." in named("<P-7>")
    assert "No process has the id or key P7." in named("P\0" + "7")
    assert "The process has ended." in named("P-1")
    assert 'id="deliver"' not in named("P-1", deliver="x")
    taken = InboxEvent.objects.get(event_id="P-1 packed")
    assert 'id="deliver"' not in named("P-1", deliver=taken.pk)


def test_s9_2_a_text_that_reads_as_a_list_is_not_that_list() -> None:
    process, event = parcel("P-1"), lost("P-9", id="a")
    rows = ProcessInstance.objects.filter(pk=process.pk)
    event.body = {"place": [1]}

    rows.update(data={"place": "[1]"})
    as_text = possible_processes([event])[event.pk]
    rows.update(data={"place": [1]})
    as_list = possible_processes([event])[event.pk]
    rows.update(data=process.data)  # as its ledger tells

    assert as_text == []
    assert [near.why for near in as_list] == ["same place"]


@pytest.fixture
def read(admin: Client) -> Read:
    return lambda query: admin.read(f"/events/{query}")


@cases(
    "query, ids",
    ("?q=lost", ["lost"]),
    ("?type=ParcelPacked", ["P-1 packed"]),
    ("?key=P-1", ["P-1 packed", "order P-1"]),
    ("?key=P-9", ["lost"]),
    ("?verdict=moved", ["P-1 packed"]),
    ("?verdict=unrouted", ["lost"]),
    ("?verdict=unrouted&type=ParcelPacked", []),
    ("?from=2020-01-01", ["lost", "P-1 packed", "order P-1"]),
    ("?to=2020-01-01", []),
    ("?q=lost&key=P-1", []),
)
def test_s9_1_events_are_found_by_id_type_key_verdict_and_time(
    query: str, ids: list[str], read: Read
) -> None:
    parcel()
    lost("P-9")

    text = read(query)

    rows = re.findall(r'<tr id="event-(\d+)', text)
    events = {str(row.pk): row.event_id for row in InboxEvent.objects.all()}
    assert [events[pk] for pk in rows] == ids
    assert text.count("remove the filter") == query.count("=")
    assert "is no day" in read("?from=soon")
    assert "There is no such verdict" in read("?verdict=perhaps")


def test_s9_1_each_verdict_is_said_in_words(read: Read) -> None:
    process = parcel()
    send_event(DepotOpened("east"), id="depot")
    for _ in range(2):
        tell(process, ParcelScanned("P-1", "east"), id="scan")

    found = search_events(EventFilters(since="2020-01-01")).rows
    said = {
        row.event_id: event_outcomes(found)[row.pk] for row in found if row.process_id
    }

    assert said == {
        "order P-1": "It started P-1.",
        "P-1 packed": "It moved P-1 from Packing to On the way.",
        "scan": "P-1 took it in On the way and stayed there.",
    }
    assert "repeated once" in read("?q=scan")


def test_s9_1_days_are_found_along_the_keys() -> None:
    now = timezone.now().replace(hour=12)
    for number in range(9):
        event = lost(f"P-{number}", id=f"{number}")
        event.received_at = now - timedelta(days=8 - number)
        event.save()
    day = str((timezone.localtime(now) - timedelta(days=3)).date())

    found = search_events(EventFilters(since=day, until=day)).rows
    later = search_events(EventFilters(since=day)).rows

    assert [row.event_id for row in found] == ["5"]
    assert [row.event_id for row in later] == ["8", "7", "6", "5"]


def test_s9_1_pages_show_each_event_once_also_of_one_id_from_many_senders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(PAGE + 10):
        send_event(ParcelScanned("P-1", "Basel"), id="same", source=f"scanner-{number}")
    same = EventFilters(q="same")
    first = search_events(same)
    assert len(first.rows) == PAGE
    assert len(search_events(same, str(first.older)).rows) == 10

    monkeypatch.setattr(event_search, "PAGE", 3)
    monkeypatch.setattr(event_search, "LOOKED_AT", 5)
    for number in range(12):
        lost(f"P-{number}", id=f"{number}")
        send_event(DepotOpened("east"), id=f"depot {number}")
    run()
    scans = EventFilters(type="ParcelScanned")
    found = [
        row.event_id for row in all_rows(lambda before: search_events(scans, before))
    ]
    assert found == [f"{n}" for n in reversed(range(12))] + ["same"] * (PAGE + 10)


def test_s9_2_a_page_offers_to_deliver_and_does_so(read: Read, admin: Client) -> None:
    process, event = parcel(), lost("P-9", parcel_id="P-1")
    pass_time(timedelta(minutes=2))

    [button] = re.findall(r'<button[^>]*id="deliver-[^>]*>', read(""))
    assert f'data-given="{process.pk}"' in button
    assert f'data-revision="{process.revision}"' in button
    said = {"key": str(uuid4()), "revision": process.revision, "reason": "wrong key"}
    answer = admin.post(
        f"/events/{event.pk}/deliver/",
        {**said, "process": str(process.pk)},
        headers={"HX-Request": "true"},
    )

    assert answer.status_code == 200
    assert "Offered to that process." in answer.content.decode()
    run()
    event.refresh_from_db()
    assert event.verdict == Verdict.MOVED
