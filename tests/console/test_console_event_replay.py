"""S9.3: events that nothing took are replayed or discarded as a set, frozen as it was shown, each at most once."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.utils import timezone

from monitoring.queries import bulk as pages
from monitoring.queries import kept_events
from monitoring.queries.event_search import EventFilters
from monitoring.queries.kept_events import look
from orchestrator import send_event
from orchestrator.engine.operations import redeliver
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import (
    BulkItem,
    BulkOperation,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    Verdict,
)
from orchestrator.testing import pass_time, run
from tests.apps.process_managers.desk import underway as parcel
from tests.apps.process_managers.messages import (
    DepotOpened,
    ParcelPacked,
    ParcelScanned,
)
from tests.browser.samples import HARMFUL
from tests.services.bulk import (
    AT_ONCE,
    LATER,
    a_moment,
    asked,
    begun,
    frozen,
    verdicts,
    worked_on,
)
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.pressing import form, pressed

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

BEGIN = "/operations/begin/?of=events"


def lost(id: str, key: str = "P-?", place: str = "east") -> InboxEvent:
    """A scan of a parcel that nobody knows."""
    number = send_event(ParcelScanned(key, place), id=id, correlation_key=key).number
    run()
    return InboxEvent.objects.get(pk=number)


def last() -> BulkOperation:
    return BulkOperation.objects.latest("pk")


def at_rest(*operations: BulkOperation) -> None:
    """Have workers leave operations alone until they are worked on."""
    later = database_now() + LATER
    keys = [one.pk for one in operations]
    BulkOperation.objects.filter(pk__in=keys).update(wake_at=later)


def ids(operation: BulkOperation) -> list[str]:
    """The events of an operation, in the order in which they were frozen."""
    keys = operation.items.order_by("pk").values_list("event_id", flat=True)
    known = InboxEvent.objects.in_bulk(list(keys))
    return [known[key].event_id for key in keys if key]


@pytest.fixture
def five() -> None:
    """Five events that nothing took."""
    process = parcel("P-9")
    send_event(ParcelPacked(3), id="early", process_id=process.pk)
    for id, key in (("a", "P-1"), ("b", "P-2"), ("c", "P-2")):
        lost(id, key)
    send_event(DepotOpened("east"), id="depot")
    InboxEvent.objects.filter(event_id="depot").update(verdict="unrouted")
    run()
    a_moment()


@cases(
    "query, found",
    ("&type=ParcelScanned", ["a", "b", "c"]),
    ("&verdict=unrouted", ["a", "b", "c", "depot"]),
    ("&type=ParcelScanned&key=P-2", ["b", "c"]),
    ("&q=b", ["b"]),
    ("&q=b&key=P-1", []),
    ("&type=ParcelScanned&from=2020-01-01", ["a", "b", "c"]),
    ("&to=2020-01-01", []),
    ("&type=ParcelPacked", ["early"]),
    ("&verdict=moved", []),
    ("&verdict=parked&type=ParcelScanned", []),
)
def test_s9_3_a_filtered_set_is_shown_and_exactly_that_is_frozen(
    query: str, found: list[str], admin: Client, five: None
) -> None:
    page = admin.read(f"{BEGIN}{query}")

    if not found:
        assert "Nothing matches." in page
        return
    assert re.search(rf'id="total">\s*{len(found)}\s*<', page)
    assert form(page)["exact"] == "1"
    shown = re.findall(r"<td data-label=\"What\">\w+ <code>([^<]*)</code>", page)
    assert shown == found
    admin.post(f"{BEGIN}{query}", form(page))
    assert ids(frozen(last())) == found


def test_s9_3_a_set_is_replayed_in_the_order_received_once_each(admin: Client) -> None:
    for number in range(3):
        lost(f"{number}", "P-1", place=f"place {number}")
    parcel_ = parcel("P-2")
    InboxEvent.objects.filter(type="ParcelScanned").update(correlation_key="P-2")
    a_moment()
    pressed(admin, f"{BEGIN}&type=ParcelScanned")

    operation = worked_on(last())

    assert (operation.status, verdicts(operation)) == ("completed", {"done": 3})
    counted = IssuedCommand.objects.filter(type="CountScan", instance=parcel_)
    places = counted.order_by("revision").values_list("body__place", flat=True)
    assert list(places) == ["place 0", "place 1", "place 2"]
    done = OperatorAction.objects.filter(action="redeliver", bulk=operation)
    assert done.count() == 3
    assert {row.reason for row in done} == {"the line is back"}


def test_s9_3_what_was_taken_meanwhile_is_nothing_to_do_and_never_taken_twice(
    administrator: User,
) -> None:
    events = [lost(f"{number}", f"P-{number}") for number in range(3)]
    a_moment()
    about = {"type": "ParcelScanned"}
    operation = frozen(
        begun(administrator, about, 3, action="redeliver", selection="events")
    )
    at_rest(operation)
    process = parcel("P-7")
    InboxEvent.objects.filter(pk=events[1].pk).update(correlation_key="P-7")
    redeliver(events[1].pk, request=asked(administrator))
    run()
    assert InboxEvent.objects.get(pk=events[1].pk).verdict == Verdict.MOVED

    worked_on(operation)
    again = worked_on(operation)

    assert verdicts(again) == {"failed": 2, "skipped": 1}
    skipped = operation.items.get(event_id=events[1].pk)
    assert skipped.detail == "ParcelScanned was settled meanwhile: moved"
    scans = IssuedCommand.objects.filter(type="CountScan", instance=process)
    assert scans.count() == 1
    assert InboxEvent.objects.get(pk=events[1].pk).repeats == 0
    failed = operation.items.filter(verdict="failed").first()
    assert failed is not None
    assert failed.detail == "there is still no process that takes it"


def test_s9_3_two_operations_on_the_same_take_each_once(administrator: User) -> None:
    for number in range(4):
        lost(f"{number}", "P-1")
    a_moment()
    about = {"type": "ParcelScanned"}
    first, second = (
        frozen(begun(administrator, about, 4, action="redeliver", selection="events"))
        for _ in range(2)
    )
    at_rest(first, second)
    process = parcel("P-2")
    InboxEvent.objects.filter(type="ParcelScanned").update(correlation_key="P-2")
    for operation in (second, first):
        worked_on(operation)

    both = [verdicts(one) for one in (first, second)]
    assert sum(one.get("refused", 0) + one.get("failed", 0) for one in both) == 0
    assert sum(one.get("done", 0) for one in both) == 4
    assert sum(one.get("skipped", 0) for one in both) == 4
    scans = IssuedCommand.objects.filter(type="CountScan", instance=process)
    assert scans.count() == 4


def test_s9_3_pressed_twice_one_operation_is_begun(admin: Client) -> None:
    lost("a")
    a_moment()
    address = f"{BEGIN}&q=a"
    given = form(admin.read(address))

    first, second = (admin.post(address, given) for _ in range(2))

    assert first["Location"] == second["Location"]
    assert BulkOperation.objects.count() == 1
    assert verdicts(worked_on(last())) == {"failed": 1}
    assert OperatorAction.objects.filter(action="redeliver").count() == 1


def test_s9_3_a_set_is_discarded_with_a_reason(admin: Client) -> None:
    for number in range(50):
        lost(f"{number}")
    other = lost("other", "P-2")
    a_moment()
    address = f"{BEGIN}&action=discard&key=P-?"
    assert pressed(admin, address, reason=" ").status_code == 400
    pressed(admin, address, reason="a test of the sender")

    operation = worked_on(last())

    assert verdicts(operation) == {"done": 50}
    gone = InboxEvent.objects.filter(verdict=Verdict.DISCARDED)
    assert gone.count() == 50
    rows = OperatorAction.objects.filter(action="discard", bulk=operation)
    assert set(rows.values_list("reason", flat=True)) == {"a test of the sender"}
    other.refresh_from_db()
    assert other.verdict == Verdict.UNROUTED


def test_s9_3_a_filter_of_a_newer_version_freezes_nothing(administrator: User) -> None:
    lost("a")
    about = {"type": "ParcelScanned"}
    operation = begun(administrator, about, 1, action="discard", selection="events")
    operation.about = {**about, "place": "Kyoto"}
    operation.save()
    with pytest.raises(TypeError, match="events are not filtered by place"):
        frozen(operation)
    operation.refresh_from_db()
    assert (operation.frozen_at, operation.total, operation.status) == (
        None,
        0,
        "gathering",
    )


def test_s9_3_what_comes_later_is_left_alone(administrator: User) -> None:
    lost("a")
    a_moment()
    shown_at = database_now()
    a_moment()
    lost("b")
    operation = begun(
        administrator,
        {"type": "ParcelScanned"},
        1,
        action="discard",
        selection="events",
        shown_at=shown_at,
    )

    assert ids(frozen(operation)) == ["a"]


def test_s9_3_one_that_was_looked_for_again_meanwhile_is_still_among_them(
    administrator: User,
) -> None:
    event = lost("a")
    a_moment()
    shown_at = database_now()
    pass_time(timedelta(seconds=30))
    run()
    event.refresh_from_db()
    assert event.handled_at is not None
    operation = begun(
        administrator,
        {"q": "a"},
        1,
        action="discard",
        selection="events",
        shown_at=shown_at,
    )

    assert ids(frozen(operation)) == ["a"]


def test_s9_3_the_page_of_events_offers_it_for_what_was_looked_for(
    admin: Client,
) -> None:
    parcel("P-1")
    lost("a")

    def offered(query: str) -> list[str]:
        page = admin.read(f"/events/{query}")
        found = re.findall(r'href="/operations/begin/(\?[^"]*)"', page)
        return [one.replace("&amp;", "&") for one in found]

    assert offered("?type=ParcelScanned&key=P-?") == [
        "?action=redeliver&of=events&type=ParcelScanned&key=P-%3F",
        "?action=discard&of=events&type=ParcelScanned&key=P-%3F",
    ]
    assert offered("?tab=unrouted") == [
        "?action=redeliver&of=events&verdict=unrouted",
        "?action=discard&of=events&verdict=unrouted",
    ]
    assert offered("?verdict=moved") == []
    assert offered("") == []
    for address in offered("?type=ParcelScanned&key=P-?"):
        answer = admin.get(f"/operations/begin/{address}")
        assert "<b>ParcelScanned</b>" in answer.content.decode()


@cases(
    "query",
    "",
    "&type=",
    "&from=soon",
    "&verdict=perhaps",
    "&from=2026-02-02&to=2026-01-01",
)
def test_s9_3_all_events_or_what_is_not_understood_are_refused(
    query: str, admin: Client
) -> None:
    lost("a")
    a_moment()
    page = admin.read(f"{BEGIN}{query}")
    assert "Say which first." in page
    assert 'id="begin"' not in page
    assert 'href="/events/"' in page.partition("Say which first.")[2]

    given = form(admin.read(f"{BEGIN}&q=a"))
    assert admin.post(f"{BEGIN}{query}", given).status_code == 409
    assert not BulkOperation.objects.exists()


def test_s9_3_a_viewer_sees_why_not_and_is_refused(
    viewing: Client, viewer: User
) -> None:
    lost("a")
    a_moment()
    page = viewing.read("/events/?q=a")
    assert 'aria-describedby="begin-redeliver-why"' in page
    assert 'aria-describedby="begin-discard-why"' in page

    assert pressed(viewing, f"{BEGIN}&q=a").status_code == 403
    viewer.user_permissions.remove(Permission.objects.get(codename="view_inboxevent"))
    assert viewing.get(f"{BEGIN}&q=a").status_code == 404


def test_s9_3_more_than_a_page_looks_at_is_said_and_waits_for_a_person(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_events, "LOOKED_AT", 2)
    monkeypatch.setattr(pages, "LOOKED_AT", 2)
    monkeypatch.setattr(pages, "CAP", 4)
    for number in range(7):
        lost(f"{number}")
    a_moment()
    address = f"{BEGIN}&type=ParcelScanned"
    page = admin.read(address)
    assert re.search(r'id="total">\s*at least 4\s*<', page)
    assert "exact" not in form(page)
    admin.post(address, form(page))

    operation = worked_on(last())
    assert (operation.status, operation.total) == ("paused", 7)
    assert ids(operation) == [str(number) for number in range(7)]
    assert not OperatorAction.objects.filter(action="redeliver").exists()
    none = admin.read(f"{BEGIN}&type=ParcelPacked")
    assert "None of those looked at matches." in none


def test_s9_3_however_they_lie_each_is_found_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kept_events, "LOOKED_AT", 5)
    for number in range(23):
        event = lost(f"{number}")
        verdict = ["unrouted", "unexpected", "rejected"][number % 3]
        kind = "ParcelScanned" if number % 4 else "Elsewhere"
        rows = InboxEvent.objects.filter(pk=event.pk)
        rows.update(verdict=verdict, type=kind, received_at=timezone.now())
    now = database_now() + timedelta(seconds=1)
    for filters in (
        EventFilters(type="ParcelScanned"),
        EventFilters(since="2020-01-01"),
    ):
        found, after = list[int](), 0
        while True:
            seen = look(filters, now, after, 3)
            found += [one.pk for one in seen.found]
            if seen.after is None:
                break
            assert seen.after > after
            after = seen.after
        there = InboxEvent.objects.filter(filters.looked_for()).order_by("pk")
        assert found == list(there.values_list("pk", flat=True))
    InboxEvent.objects.update(wake_at=None)
    InboxEvent.objects.all().delete()


def test_s9_3_at_a_pace_the_oldest_is_tried_first(administrator: User) -> None:
    for number in range(3):
        lost(f"{number}")
    a_moment()
    pace = AT_ONCE.__class__(samples=(1,), batch=100, stop_above=10)
    operation = begun(
        administrator,
        {"type": "ParcelScanned"},
        3,
        action="redeliver",
        selection="events",
        pace=pace,
    )

    worked_on(operation)

    assert operation.status == "stopped"
    tried = BulkItem.objects.filter(operation=operation, verdict="failed")
    assert [item.event_id for item in tried] == [
        InboxEvent.objects.get(event_id="0").pk
    ]


@cases("text", *HARMFUL)
def test_s9_3_hostile_types_and_filters_are_texts(text: str, admin: Client) -> None:
    event = lost("a")
    kind = text.replace("\0", "")[:100].strip()
    InboxEvent.objects.filter(pk=event.pk).update(type=kind)
    a_moment()
    answer = admin.get("/operations/begin/", {"of": "events", "type": kind})
    page = answer.content.decode()

    assert re.search(r'id="total">\s*1\s*<', page)
    for planted in ("<script>alert", "<img src=x", "<svg/onload", "id=planted>"):
        assert planted not in page
    InboxEvent.objects.filter(pk=event.pk).update(type="ParcelScanned")
