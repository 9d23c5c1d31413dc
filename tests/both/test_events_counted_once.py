"""An event that no process took is counted and listed once: among the events, and not among the failures."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from monitoring.attention.health import health
from monitoring.attention.last_hour import last_hour
from monitoring.lists.failures import failures as lists
from monitoring.lists.failures.failure_marks import handled_causes
from monitoring.lists.failures.failures import (
    count_open_failures,
    failure_groups,
    handled_groups,
    largest_group,
)
from monitoring.lists.failures.resolved_failures import resolved_page
from monitoring.lists.search_box import Lookup
from orchestrator import Permanent, send_event
from orchestrator.configuration.conf import conf
from orchestrator.engine.operations import (
    assign_failures,
    deliver,
    discard,
    mark_handled,
)
from orchestrator.models import FailureMark, InboxEvent, Incident
from orchestrator.models.incident import EVENT_KINDS
from orchestrator.notices import message as notices
from orchestrator.testing import pass_time, run
from tests.apps.process_managers.desk import tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    CountScan,
    ParcelDelivered,
    ParcelScanned,
)
from tests.console.test_console_attention import needs, rows
from tests.services.asking import asked
from tests.services.cases import cases, words
from tests.services.client import Read
from tests.services.doing import fresh, raising, refused
from tests.services.hired import hire

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

PATIENCE = timedelta(seconds=conf().PATIENCE_SECONDS + 1)


def lost() -> InboxEvent:
    """Return an event that no process took, of which people were told."""
    scan = ParcelScanned("P-9", "east")
    sent = send_event(scan, id="lost", source="depot", correlation_key="P-9")
    pass_time(PATIENCE)
    return InboxEvent.objects.get(pk=sent.number)


def incident() -> Incident:
    found: Incident = Incident.objects.open().get()
    return found


def fail_in_its_process(handler: SetHandler) -> None:
    """Have the handler of an event fail for good."""
    handler(CountScan, raising(Permanent("no such place")))
    tell(underway(), ParcelScanned("P-1", "east"))


def counted() -> tuple[int, int]:
    """Return the numbers of failures and of events in the menu."""
    found = health()
    return found.failures.number, found.events.number


def test_s1_1_an_event_that_no_process_took_is_counted_once(read: Read) -> None:
    event = lost()
    hire()

    assert incident().event == event
    assert needs(read("/")) == {"events": ("/events/", 1)}
    assert rows(read("/events/")) == 1
    assert counted() == (0, 1)
    assert (failure_groups().rows, largest_group()) == ([], None)
    assert last_hour(timezone.now())[""].failures.number == 0
    for show in ("", "handled", "resolved"):
        assert "<tr id=" not in read(f"/failures/?show={show}")


def test_s1_1_the_page_of_such_events_calls_them_events_and_leads_to_all_of_them(
    read: Read,
) -> None:
    lost()

    page = read(f"/failures/{incident().fingerprint}/")

    assert re.search(r"<title>\s*Events of one cause", page)
    assert "1 event that nothing took" in page
    assert "1 failed" not in page
    assert re.search(r'href="/events/\?tab=unrouted">\s*All events', page)


def test_s1_1_an_event_that_was_given_up_is_counted_once_too() -> None:
    event = lost()
    pass_time(days=31)

    assert fresh(event).verdict == "unexpected"
    assert incident().kind == "unexpected_event"
    assert counted() == (0, 1)


def test_s1_1_an_event_that_fails_in_its_process_is_a_failure(
    handler: SetHandler,
) -> None:
    lost()
    fail_in_its_process(handler)

    [group] = failure_groups().rows
    assert group.newest.kind == "event_failed"
    assert counted() == (1, 2)
    assert last_hour(timezone.now())[""].failures.number == 1


def test_s1_1_an_event_that_its_process_did_not_take_is_a_failure() -> None:
    parcel = underway()
    tell(parcel, ParcelDelivered("P-1"), "the end")
    tell(parcel, ParcelDelivered("P-1"), "too late")

    assert incident().kind == "unexpected_event"
    assert counted() == (1, 1)


@cases("answer", "deliver", "discard")
def test_s1_1_an_event_that_was_delivered_or_discarded_is_counted_nowhere(
    answer: str,
) -> None:
    event, parcel = lost(), underway()
    if answer == "deliver":
        deliver(event.pk, str(parcel.pk), request=asked())
    else:
        discard(event.pk, request=asked())
    run()

    assert not Incident.objects.open().exists()
    assert counted() == (0, 0)
    assert resolved_page().rows == []


def test_s1_1_a_flood_of_events_hides_no_failure(
    handler: SetHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = lost()
    fail_in_its_process(handler)
    about: dict[str, Any] = {"kind": "unrouted_event", "event": event}
    about |= {"message": "no process", "opened_at": timezone.now()}
    causes = [f"{number % 20:064}" for number in range(40)]
    Incident.objects.bulk_create(Incident(fingerprint=f, **about) for f in causes)
    for name, most in {"MANY": 1, "CAP": 10, "CAUSES": 5}.items():
        monkeypatch.setattr(lists, name, most)

    for order in lists.ORDERS:
        [group] = failure_groups(order).rows
        assert (group.newest.kind, str(group.number)) == ("event_failed", "1")
    assert count_open_failures().number == 1
    assert count_open_failures("shipping").number == 1


# The page of their cause


def test_s9_2_events_of_one_cause_are_assigned_and_not_marked_as_handled(
    operator: User, read: Read
) -> None:
    lost()
    newest = incident()
    cause, why = newest.fingerprint, "No process took these events"
    assert f'href="/failures/{cause}/"' in read("/events/")

    assign_failures(cause, "operator", request=asked(actor=operator))
    refused(why, mark_handled, cause, newest.pk, None)

    for page in (read("/events/"), read(f"/failures/{cause}/")):
        assert re.search(r"Assigned to <b>operator</b>", page)
    assert why in page
    assert re.search(r'id="mark_handled-button"[^>]*aria-disabled="true"', page)


def test_s9_2_a_mark_of_the_release_before_hides_no_event(read: Read) -> None:
    lost()
    newest, now = incident(), timezone.now()
    marked: dict[str, Any] = {"handled_at": now, "handled_by": "ann"}
    marked |= {"last": newest.pk, "changed_at": now}
    FailureMark.objects.create(fingerprint=newest.fingerprint, **marked)

    assert (handled_causes(), handled_groups()) == ([], [])
    assert counted() == (0, 1)
    assert "ann had marked it as handled" in read("/events/")


def test_s9_2_events_of_one_cause_are_found_by_their_words(ask: Read) -> None:
    lost()
    text = "no process takes"

    assert ask(text) == f"/failures/{incident().fingerprint}/"
    [found] = Lookup(text, events=True).found()
    assert str(found.kind) == "Events that no process took"
    assert Lookup(text, events=False).found() == []


def test_a_notice_of_it_leads_to_the_events(settings: Settings) -> None:
    settings.PROCESSION_SITE_URL = "https://example.org"
    empty = words("process_id correlation_key step queue error place message")
    item: dict[str, Any] = dict.fromkeys([*empty, "definition", "fingerprint"], "")
    item |= {"kind": "unrouted_event", "topics": ["failure"], "state": "new"}
    item |= {"number": 1, "at": "2026-11-23T00:00:00+00:00"}
    now = datetime.now(UTC)

    told = notices.compose_message("1", "ops", {"failure": 1}, [item], {}, now)

    assert told.items[0].url == "https://example.org/events/"
    assert notices.EVENT_KINDS == EVENT_KINDS
