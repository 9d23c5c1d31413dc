"""S9, events: searched, each with its verdict in words; what nothing took is given to a process, with a preview."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from monitoring.queries import event_search
from monitoring.queries.event_search import PAGE, EventFilters, outcomes, search
from monitoring.queries.nearest import nearest
from orchestrator import send_event
from orchestrator.engine.events.preview import preview
from orchestrator.engine.operations import ActionRequest, cancel, deliver, pause
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
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.processes import Shipping
from tests.services.cases import cases
from tests.services.client import Client, Read

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]


@pytest.fixture
def may_deliver(administrator: User) -> User:
    return administrator


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


def asked(user: User, revision: int | None = None) -> ActionRequest:
    return ActionRequest(user, uuid4(), "it is this one", revision)


def test_s9_2_an_event_is_delivered_to_a_chosen_process(may_deliver: User) -> None:
    process, event = parcel(), lost()
    assert event.verdict == Verdict.UNROUTED

    row = deliver(
        event.pk, str(process.pk), request=asked(may_deliver, process.revision)
    )
    run()

    event.refresh_from_db()
    assert (event.verdict, event.process_id) == (Verdict.MOVED, process.pk)
    assert event.error == ""
    assert row.instance_id == process.pk
    assert row.after["process"] == str(process.pk)
    assert IssuedCommand.objects.filter(type="CountScan").count() == 1


def test_s9_2_pressed_twice_it_is_delivered_once(may_deliver: User) -> None:
    process, event = parcel(), lost()
    request = asked(may_deliver)

    for _ in range(2):
        deliver(event.pk, str(process.pk), request=request)
        run()

    assert OperatorAction.objects.count() == 1
    assert IssuedCommand.objects.filter(type="CountScan").count() == 1


def test_s9_2_what_cannot_be_delivered_is_refused_with_the_reason(
    may_deliver: User, operator: User
) -> None:
    process, event = parcel(), lost()

    def refused(error: type[Exception], said: str, to: Any, by: ActionRequest) -> None:
        with pytest.raises(error, match=said):
            deliver(event.pk, str(to), request=by)

    refused(StaleRevision, "has changed since", process.pk, asked(may_deliver, 1))
    refused(OperationRefused, "there is no process x", "x", asked(may_deliver))
    refused(OperationRefused, "there is no process", uuid4(), asked(may_deliver))
    viewer = User.objects.create_user("nobody")
    refused(OperationRefused, "may not", process.pk, asked(viewer))
    other = lost(id="other")
    InboxEvent.objects.filter(pk=other.pk).update(type="DepotOpened")
    with pytest.raises(OperationRefused, match="shipping takes no DepotOpened"):
        deliver(other.pk, str(process.pk), request=asked(may_deliver))
    cancel(process.pk, request=asked(may_deliver))
    refused(OperationRefused, "has ended", process.pk, asked(may_deliver))
    event.refresh_from_db()
    assert event.verdict == Verdict.UNROUTED


def test_s9_2_an_event_that_was_parked_with_another_process_leaves_it(
    may_deliver: User,
) -> None:
    first, second = parcel("P-1"), parcel("P-2")
    number = send_event(ParcelPacked(3), id="again", process_id=first.pk).number
    run()
    send_event(ParcelDelivered("P-2"), id="end", process_id=second.pk)
    third = ProcessInstance.objects.get(pk=first.pk)
    assert third.parked == 1

    send_event(ParcelOrdered("P-3"), id="P-3 ordered")
    run()
    target = ProcessInstance.objects.get(correlation_key="P-3")
    deliver(number, str(target.pk), request=asked(may_deliver))
    run()

    first.refresh_from_db()
    target.refresh_from_db()
    assert first.parked == 0
    assert target.step == "OnTheWay"


def test_s9_2_a_preview_says_what_would_happen_and_does_nothing(
    handler: SetHandler,
) -> None:
    process = parcel()
    called: list[Any] = []
    handler(CountScan, called.append)
    there = Checkpoint.objects.count(), InboxEvent.objects.count()

    found = preview("ParcelScanned", {"parcel_id": "P-1", "place": "east"}, process)
    ending = preview("ParcelDelivered", {"parcel_id": "P-1"}, process)
    early = preview("ParcelPacked", {"weight": 1}, process)
    unknown = preview("DepotOpened", {"depot": "east"}, process)
    broken = preview("ParcelScanned", {"place": 5}, process)

    assert (found.outcome, found.to, found.commands) == ("moved", "", ("CountScan",))
    assert (found.before["place"], found.after["place"]) == ("", "east")
    assert (ending.outcome, ending.to) == ("moved", "Delivered")
    assert early.outcome == "parked"
    assert unknown.outcome == "not_known"
    assert broken.outcome == "failed"
    assert "parcel_id" in broken.why or "place" in broken.why
    assert called == []
    assert (Checkpoint.objects.count(), InboxEvent.objects.count()) == there
    process.refresh_from_db()
    assert process.revision == 2


def test_s9_2_a_preview_undoes_what_a_predicate_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process, decide = parcel(), Shipping.decide

    def writing(*given: Any, **more: Any) -> Any:
        User.objects.create_user("planted")
        return decide(*given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Shipping, "decide", writing)
        found = preview("ParcelDelivered", {"parcel_id": "P-1"}, process)

    assert found.outcome == "moved"
    assert not User.objects.filter(username="planted").exists()


def test_s9_2_of_a_process_that_ended_or_is_paused_a_preview_says_so(
    may_deliver: User,
) -> None:
    process = parcel()
    pause(process.pk, request=asked(may_deliver))
    process.refresh_from_db()
    body = {"parcel_id": "P-1"}
    assert preview("ParcelDelivered", body, process).outcome == "paused"
    cancel(process.pk, request=asked(may_deliver))
    process.refresh_from_db()
    assert preview("ParcelDelivered", body, process).outcome == "ended"


def test_s9_2_the_nearest_processes_have_its_key_or_its_data() -> None:
    by_key, other = parcel("P-1"), parcel("P-2")
    of_key = lost("P-9", id="a", parcel_id="P-1")
    scan = ParcelScanned("P-2", "harbour")
    send_event(scan, id="scan", process_id=other.pk)
    run()
    of_data = lost("P-9", id="b", parcel_id="P-8", place="harbour")
    of_nothing = lost("P-9", id="c", parcel_id="P-7", place="nowhere")

    found = nearest([of_key, of_data, of_nothing])

    assert [one.process.pk for one in found[of_key.pk]] == [by_key.pk]
    assert found[of_key.pk][0].why == "same key"
    assert [one.process.pk for one in found[of_data.pk]] == [other.pk]
    assert found[of_data.pk][0].why == "same place"
    assert "would take it" in found[of_data.pk][0].said
    assert found[of_nothing.pk] == []


def test_s9_2_a_text_that_reads_as_a_list_is_not_that_list() -> None:
    process, event = parcel("P-1"), lost("P-9", id="a")
    rows = ProcessInstance.objects.filter(pk=process.pk)
    event.body = {"place": [1]}

    rows.update(data={"place": "[1]"})
    as_text = nearest([event])[event.pk]
    rows.update(data={"place": [1]})
    as_list = nearest([event])[event.pk]
    rows.update(data=process.data)  # as its ledger tells

    assert as_text == []
    assert [near.why for near in as_list] == ["same place"]


@pytest.fixture
def read(admin: Client) -> Read:
    def read_page(query: str) -> str:
        return admin.read(f"/events/{query}")

    return read_page


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

    assert re.findall(r"<code>([^<]*)</code>\s*</div>", text)[
        : len(ids)
    ] == ids or ids == [row.event_id for row in search(filters(query)).rows]
    assert text.count('<tr id="event-') == len(ids)
    given = query.removeprefix("?").split("&")
    assert text.count("remove the filter") == len(given)


def filters(query: str) -> EventFilters:
    parts = dict(part.split("=") for part in query.removeprefix("?").split("&"))
    named = {"from": "since", "to": "until"}
    return EventFilters(
        **{named.get(name, name): value for name, value in parts.items()}
    )


def test_s9_1_each_verdict_is_said_in_words(read: Read) -> None:
    process = parcel()
    send_event(ParcelScanned("P-1", "east"), id="scan", process_id=process.pk)
    send_event(DepotOpened("east"), id="depot")
    run()
    send_event(ParcelScanned("P-1", "east"), id="scan", process_id=process.pk)
    rows = {row.event_id: row for row in InboxEvent.objects.all()}

    said = outcomes(search(EventFilters(since="2020-01-01")).rows)

    assert said[rows["order P-1"].pk] == "It started P-1."
    assert said[rows["P-1 packed"].pk] == "It moved P-1 from Packing to On the way."
    assert said[rows["scan"].pk] == "P-1 took it in On the way and stayed there."
    assert "repeated once" in read("?q=scan")


def test_s9_1_days_are_found_along_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(9):
        lost(f"P-{number}", id=f"{number}")
    now = timezone.now().replace(hour=12)
    for age, row in enumerate(InboxEvent.objects.order_by("-pk")):
        at = now - timedelta(days=age)
        InboxEvent.objects.filter(pk=row.pk).update(received_at=at)
    day = str((timezone.localtime(now) - timedelta(days=3)).date())

    found = search(EventFilters(since=day, until=day)).rows
    later = search(EventFilters(since=day)).rows

    assert [row.event_id for row in found] == ["5"]
    assert [row.event_id for row in later] == ["8", "7", "6", "5"]


def test_s9_1_pages_of_what_is_looked_for_show_each_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(event_search, "PAGE", 3)
    monkeypatch.setattr(event_search, "LOOKED_AT", 5)
    for number in range(12):
        lost(f"P-{number}", id=f"{number}")
        send_event(DepotOpened("east"), id=f"depot {number}")
    run()
    seen, before = [], ""
    for _ in range(30):
        page = search(EventFilters(type="ParcelScanned"), before)
        seen += [row.event_id for row in page.rows]
        before = str(page.older or "")
        if not before:
            break

    assert seen == [str(number) for number in reversed(range(12))]


def test_s9_1_what_cannot_be_understood_says_why(read: Read) -> None:
    assert "is no day" in read("?from=soon")
    assert "There is no such verdict" in read("?verdict=perhaps")


def test_s9_2_a_page_offers_to_deliver_and_carries_it_out(
    read: Read, admin: Client
) -> None:
    process, event = parcel(), lost("P-9", parcel_id="P-1")
    pass_time(timedelta(minutes=2))

    text = read("")
    button = re.search(r'<button[^>]*id="deliver-[^>]*>', text)
    assert button is not None
    assert f'data-given="{process.pk}"' in button[0]
    assert f'data-revision="{process.revision}"' in button[0]
    answer = admin.post(
        f"/events/{event.pk}/deliver/",
        {
            "key": str(uuid4()),
            "revision": process.revision,
            "reason": "wrong key",
            "process": str(process.pk),
        },
        headers={"HX-Request": "true"},
    )

    assert answer.status_code == 200
    assert "Offered to that process." in answer.content.decode()
    run()
    event.refresh_from_db()
    assert event.verdict == Verdict.MOVED


def test_s9_1_all_events_of_one_id_are_found_however_many_senders_gave_it() -> None:
    for number in range(PAGE + 10):
        send_event(ParcelScanned("P-1", "Basel"), id="same", source=f"scanner-{number}")

    first = search(EventFilters(q="same"))
    assert len(first.rows) == PAGE
    assert len(search(EventFilters(q="same"), str(first.older)).rows) == 10
