"""S9.3: events that nothing took are replayed or discarded as a set, frozen as it was shown, each at most once."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from monitoring.lists.bulk import bulk as pages
from monitoring.lists.events import selected_events
from monitoring.lists.events.event_search import EventFilters
from monitoring.lists.events.selected_events import next_events
from monitoring.queries.lists import every_page
from orchestrator import send_event
from orchestrator.definition.codec import text_digest
from orchestrator.engine.operations import Pace, redeliver
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.storage.repeats import content_of
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
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
from tests.conftest import permissions
from tests.services.bulk import (
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
from tests.services.reading import planted

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

BEGIN = "/operations/begin/?of=events"


SCANS = "&type=ParcelScanned"


def lost(id: str, key: str = "P-?", place: str = "east") -> InboxEvent:
    """A scan of a parcel that nobody knows."""
    number = send_event(ParcelScanned(key, place), id=id, correlation_key=key).number
    run()
    return InboxEvent.objects.get(pk=number)


def several(number: int) -> list[InboxEvent]:
    """So many of them, named by their numbers."""
    found = [lost(f"{n}", place=f"place {n}") for n in range(number)]
    a_moment()
    return found


def known_now(event: InboxEvent | None = None) -> ProcessInstance:
    """A parcel that takes one of them, or all."""
    process = parcel("P-7")
    rows = InboxEvent.objects.filter(type="ParcelScanned")
    rows = rows.filter(pk=event.pk) if event else rows
    for row in rows:  # as if its sender had named this key
        row.correlation_key = "P-7"
        row.body_hash = text_digest(content_of(row.type, row.body, "", "P-7"))
        row.save()
    return process


def counted(process: ProcessInstance) -> list[str]:
    """The places of the scans that a parcel has taken, in their order."""
    found = IssuedCommand.objects.filter(type="CountScan", instance=process)
    return list(found.order_by("revision").values_list("body__place", flat=True))


def of_scans(
    actor: User, number: int, action: str = "redeliver", **more: Any
) -> BulkOperation:
    """An operation on those that are shown now."""
    about = more.pop("about", {"type": "ParcelScanned"})
    return begun(actor, about, number, action=action, selection="events", **more)


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
    several(3)
    process = known_now()
    pressed(admin, "/operations/begin/?verdict=unrouted")  # which events alone have

    operation = worked_on(last())

    assert (operation.status, verdicts(operation)) == ("completed", {"done": 3})
    assert counted(process) == ["place 0", "place 1", "place 2"]
    done = OperatorAction.objects.filter(action="redeliver", bulk=operation)
    assert [row.reason for row in done] == ["the line is back"] * 3


def test_s9_3_what_was_taken_meanwhile_is_nothing_to_do_and_never_taken_twice(
    administrator: User,
) -> None:
    _, event, _ = several(3)
    operation = frozen(of_scans(administrator, 3))
    at_rest(operation)
    process = known_now(event)
    redeliver(event.pk, request=asked(administrator))
    run()
    event.refresh_from_db()
    assert event.verdict == Verdict.MOVED

    worked_on(operation)
    again = worked_on(operation)

    assert verdicts(again) == {"failed": 2, "skipped": 1}
    details = dict(operation.items.values_list("verdict", "detail"))
    assert details == {
        "skipped": "ParcelScanned was settled meanwhile: moved",
        "failed": "there is still no process that takes it",
    }
    assert len(counted(process)) == 1
    event.refresh_from_db()
    assert event.repeats == 0


def test_s9_3_two_operations_on_the_same_take_each_once(administrator: User) -> None:
    several(4)
    first, second = (frozen(of_scans(administrator, 4)) for _ in range(2))
    at_rest(first, second)
    process = known_now()
    for operation in (second, first):
        worked_on(operation)

    both = Counter(verdicts(first)) + Counter(verdicts(second))
    assert both == {"done": 4, "skipped": 4}
    assert len(counted(process)) == 4


def test_s9_3_pressed_twice_one_operation_is_begun(admin: Client) -> None:
    several(1)
    address = f"{BEGIN}{SCANS}"
    given = form(admin.read(address))

    first, second = (admin.post(address, given) for _ in range(2))

    assert first["Location"] == second["Location"]
    assert BulkOperation.objects.count() == 1
    assert verdicts(worked_on(last())) == {"failed": 1}
    assert OperatorAction.objects.filter(action="redeliver").count() == 1


def test_s9_3_a_set_is_discarded_with_a_reason(admin: Client) -> None:
    several(50)
    other = lost("other", "P-2")
    a_moment()
    address = f"{BEGIN}&action=discard&key=P-?"
    assert pressed(admin, address, reason=" ").status_code == 400
    pressed(admin, address, reason="a test of the sender")

    operation = worked_on(last())

    assert verdicts(operation) == {"done": 50}
    assert InboxEvent.objects.filter(verdict=Verdict.DISCARDED).count() == 50
    rows = OperatorAction.objects.filter(action="discard", bulk=operation)
    assert {row.reason for row in rows} == {"a test of the sender"}
    other.refresh_from_db()
    assert other.verdict == Verdict.UNROUTED


def test_s9_3_a_filter_of_a_newer_version_freezes_nothing(administrator: User) -> None:
    several(1)
    operation = of_scans(administrator, 1, "discard")
    operation.about |= {"place": "Kyoto"}
    operation.save()
    with pytest.raises(TypeError, match="unknown filters: place"):
        frozen(operation)
    operation.refresh_from_db()
    found = (operation.frozen_at, operation.total, operation.status)
    assert found == (None, 0, "gathering")


def test_s9_3_what_comes_later_is_left_alone_and_what_was_looked_for_again_is_not(
    administrator: User,
) -> None:
    [event] = several(1)
    shown = {"shown_at": database_now()}
    a_moment()
    pass_time(timedelta(seconds=30))
    run()
    event.refresh_from_db()
    assert event.handled_at is not None
    lost("later")

    for more in (shown, {**shown, "about": {"key": "P-?"}}):
        assert ids(frozen(of_scans(administrator, 1, "discard", **more))) == ["0"]


def test_s9_3_the_page_of_events_offers_it_for_what_was_sought(admin: Client) -> None:
    parcel("P-1")
    lost("a")

    def offered(query: str) -> list[str]:
        page = admin.read(f"/events/{query}")
        found = re.findall(r'href="/operations/begin/(\?[^"]*)"', page)
        return [one.replace("&amp;", "&") for one in found]

    both = ("?action=redeliver&of=events", "?action=discard&of=events")
    scans = [f"{one}&type=ParcelScanned&key=P-%3F" for one in both]
    assert offered("?type=ParcelScanned&key=P-?") == scans
    assert offered("?tab=unrouted") == [f"{one}&verdict=unrouted" for one in both]
    assert offered("?verdict=moved") == offered("") == []
    for address in scans:
        assert "<b>ParcelScanned</b>" in admin.read(f"/operations/begin/{address}")


@cases(
    "query",
    "",
    "&type=",
    "&from=soon",
    "&verdict=perhaps",
    "&from=2026-02-02&to=2026-01-01",
)
def test_s9_3_all_events_or_nothing_known_is_refused(query: str, admin: Client) -> None:
    several(1)
    page = admin.read(f"{BEGIN}{query}")
    assert "Say which first." in page
    assert 'id="begin"' not in page
    assert 'href="/events/"' in page.partition("Say which first.")[2]

    given = form(admin.read(f"{BEGIN}{SCANS}"))
    assert admin.post(f"{BEGIN}{query}", given).status_code == 409
    assert not BulkOperation.objects.exists()


def test_s9_3_a_viewer_sees_why_and_is_refused(viewing: Client, viewer: User) -> None:
    several(1)
    page = viewing.read("/events/?type=ParcelScanned")
    for action in ("redeliver", "discard"):
        assert f'aria-describedby="begin-{action}-why"' in page

    assert pressed(viewing, f"{BEGIN}{SCANS}").status_code == 403
    viewer.user_permissions.remove(permissions()["view_inboxevent"])
    for address in (f"{BEGIN}{SCANS}", "/operations/begin/?verdict=unrouted"):
        viewing.read(address, status=404)


def test_s9_3_more_than_a_page_looks_at_is_said_and_waits_for_a_person(
    admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, number in (
        (selected_events, "LOOKED_AT", 2),
        (pages, "LOOKED_AT", 2),
        (pages, "CAP", 4),
    ):
        monkeypatch.setattr(module, name, number)
    several(7)
    page = admin.read(f"{BEGIN}{SCANS}")
    assert re.search(r'id="total">\s*at least 4\s*<', page)
    assert "exact" not in form(page)
    admin.post(f"{BEGIN}{SCANS}", form(page))

    operation = worked_on(last())
    assert (operation.status, operation.total) == ("paused", 7)
    assert ids(operation) == [str(number) for number in range(7)]
    assert not OperatorAction.objects.filter(action="redeliver").exists()
    none = admin.read(f"{BEGIN}&type=ParcelPacked")
    assert "None of those looked at matches." in none


def test_s9_3_each_is_found_once_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selected_events, "LOOKED_AT", 5)
    for number, event in enumerate(several(23)):
        event.verdict = ["unrouted", "unexpected", "rejected"][number % 3]
        event.type = "ParcelScanned" if number % 4 else "Elsewhere"
        event.received_at = timezone.now()
        event.save()
    now = database_now() + timedelta(seconds=1)
    scans, dated = EventFilters(type="ParcelScanned"), EventFilters(since="2020-01-01")
    for filters in (scans, dated):
        looks = every_page(partial(next_events, filters, now, most=3))
        found = [one.pk for rows in looks for one in rows]
        there = InboxEvent.objects.filter(filters.unindexed()).order_by("pk")
        assert found == list(there.values_list("pk", flat=True))
    InboxEvent.objects.update(wake_at=None)
    InboxEvent.objects.all().delete()


def test_s9_3_at_a_pace_the_oldest_is_tried_first(administrator: User) -> None:
    first, *_ = several(3)
    pace = Pace(samples=(1,), batch=100, stop_above=10)

    operation = worked_on(of_scans(administrator, 3, pace=pace))

    assert operation.status == "stopped"
    tried = operation.items.filter(verdict="failed")
    assert [item.event_id for item in tried] == [first.pk]


@cases("text", *HARMFUL)
def test_s9_3_hostile_types_and_filters_are_texts(text: str, admin: Client) -> None:
    several(1)
    kind = text.replace("\0", "")[:100].strip()
    InboxEvent.objects.update(type=kind)
    page = admin.read("/operations/begin/", {"of": "events", "type": kind})
    InboxEvent.objects.update(type="ParcelScanned")

    assert re.search(r'id="total">\s*1\s*<', page)
    assert planted(page) == []
