"""S6, the pages of bulk operations: what would be done is shown and exactly that is begun; then how far it is."""

import re
from urllib.parse import parse_qs
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from examples.order_listing.messages import Destination, ListedOnInternal
from examples.order_listing.orders import place_order
from monitoring.lists.bulk import bulk as pages
from monitoring.lists.processes.filters import Filters
from orchestrator import send_event
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    Incident,
    OperatorAction,
    ProcessInstance,
)
from orchestrator.testing import run
from tests.browser.samples import HARMFUL
from tests.conftest import of, permissions, person
from tests.services.bulk import a_moment, begun, frozen, verdicts, worked_on
from tests.services.cases import cases, words
from tests.services.client import Client, Read
from tests.services.pressing import form, pressed
from tests.services.reading import BY_SCRIPT, planted

pytestmark = pytest.mark.django_db

FAILED = "/operations/begin/?action=retry&status=failed"


@pytest.fixture(scope="module", autouse=True)
def failed(module_db: None) -> list[ProcessInstance]:
    """Three orders that failed for one cause."""
    return fail(3)


def fail(number: int) -> list[ProcessInstance]:
    count = ProcessInstance.objects.count()
    keys = [f"F-{count + n}" for n in range(number)]
    for key in keys:
        place_order(Destination.BOTH, key, key)
    run()
    a_moment()
    return list(ProcessInstance.objects.filter(correlation_key__in=keys))


def cause() -> str:
    return str(Incident.objects.open().latest("pk").fingerprint)


def last() -> BulkOperation:
    return BulkOperation.objects.latest("pk")


# Before


def test_s6_1_the_page_shows_what_matches_and_where_it_stands(
    failed: list[ProcessInstance], read: Read
) -> None:
    page = read(FAILED)

    assert re.search(r'id="total">\s*3\s*<', page)
    for process in failed:
        assert f'href="/processes/{process.pk}/"' in page
    assert form(page)["shown"] == "3"
    assert form(page)["exact"] == "1"


def test_s6_1_a_count_that_is_not_exact_says_so(
    operating: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "CAP", 2)
    page = operating.read(FAILED)
    assert re.search(r'id="total">\s*at least 2\s*<', page)
    assert "exact" not in form(page)
    pressed(operating, FAILED)

    operation = worked_on(last())
    assert (operation.status, operation.total) == ("paused", 3)
    assert not OperatorAction.objects.filter(action="retry").exists()


def test_opening_the_page_writes_nothing(read: Read) -> None:
    for address in (FAILED, f"/operations/begin/?cause={cause()}", "/operations/"):
        read(address)

    assert not OperatorAction.objects.exists()
    assert not BulkOperation.objects.exists()


@cases(
    "query, said",
    ("", "Say which first."),
    ("?status=&q=", "Say which first."),
    ("?status=paused", "Nothing matches."),
)
def test_s6_1_a_list_that_is_not_narrowed_or_has_nothing_is_refused(
    query: str, said: str, operating: Client
) -> None:
    address = f"/operations/begin/{query}"
    page = operating.read(address)
    assert said in page
    assert 'id="begin"' not in page

    given = form(operating.read(FAILED))
    assert operating.post(address, given).status_code == 409
    assert not BulkOperation.objects.exists()


@cases(
    "filters, number",
    ("status=failed", 3),
    ("status=live", 4),
    ("definition=order-listing", 4),
    ("q=F-1", 1),
    ("definition=order-listing&status=failed&q=F-", 3),
    ("version=2", 4),
    ("version=9", 0),
    ("step=AwaitingExternalCreation", 3),
    ("owner=nobody", 4),
    ("definition=none", 0),
)
def test_s6_1_it_acts_on_what_the_list_shows_with_every_filter(
    filters: str, number: int, operating: Client
) -> None:
    place_order(Destination.INTERNAL, "1 MWh", "I-1")
    listed = operating.read(f"/processes/?{filters}")
    rows = set(re.findall(r'data-row="([^"]+)"', listed))
    page = operating.read(f"/operations/begin/?{filters}")
    shown = re.findall(r'id="total">\s*(\d+)', page)
    assert shown == ([str(len(rows))] if rows else [])
    if not rows:
        assert number == 0
        return
    pressed(operating, f"/operations/begin/?action=escalate&{filters}")

    items = frozen(last()).items.values_list("process_id", flat=True)
    assert set(map(str, items)) == rows


@cases(
    "query",
    "status=failed&started=today",
    "cause=x&status=failed",
    "cause=x&definition=order-listing",
    "verdict=unrouted&definition=order-listing",
    "of=events&type=OrderCreated&status=failed",
    *(f"action={one}&status=failed" for one in words("skip pause none redeliver")),
    "action=start_bulk&status=failed",
)
def test_s6_1_what_cannot_be_kept_to_or_done_to_many_is_refused_and_never_ignored(
    query: str, operating: Client
) -> None:
    given = form(operating.read(FAILED))
    place = f"/operations/begin/?{query}"

    assert operating.get(place).status_code == 404
    assert operating.post(place, given).status_code == 404
    assert not BulkOperation.objects.exists()


def test_s6_1_another_action_keeps_every_filter(operating: Client) -> None:
    narrowed = "definition=order-listing&status=failed&q=F-1"
    page = operating.read(f"/operations/begin/?{narrowed}")
    tabs = re.findall(r'<a href="(\?[^"]*action=[^"]*)"', page)

    assert len(tabs) > 3
    for tab in tabs:
        kept = parse_qs(tab.replace("&amp;", "&").lstrip("?"))
        assert kept.pop("action")
        assert kept == parse_qs(narrowed)


def test_s6_2_the_pace_is_what_was_asked_for(operating: Client) -> None:
    pace = {"samples": "1, 5", "batch": 7, "rate": 2.5, "per_key": 3, "stop_above": 10}
    pressed(operating, FAILED, **pace)

    assert {name: getattr(last(), name) for name in pace} == {**pace, "samples": [1, 5]}


@cases(
    "changed",
    *({"samples": text} for text in ("one", "0")),
    *({"batch": text} for text in ("", "0", "100000")),
    *({"rate": text} for text in ("nan", "-1")),
    {"per_key": "0"},
    {"stop_above": "100"},
    {"reason": " "},
    *({"shown_at": text} for text in ("yesterday", "2026-11-23T07:00:00")),
    {"shown_at": "0001-01-01T00:00:00+14:00"},
    {"shown_at": "9999-12-31T23:59:59-14:00"},
    {"key": "none"},
    {"shown": "-1"},
)
def test_what_is_out_of_bounds_is_said_and_nothing_begins(
    changed: dict[str, str], operating: Client
) -> None:
    answer = pressed(operating, FAILED, **changed)

    assert answer.status_code in (400, 409)
    assert 'class="notice bad" role="alert"' in answer.content.decode()
    assert operating.post(FAILED, {}).status_code == 400
    assert not BulkOperation.objects.exists()


def test_who_may_not_act_on_many_sees_why(operating: Client, operator: User) -> None:
    operator.user_permissions.remove(permissions()["run_bulkoperation"])
    page = operating.read(FAILED)
    assert re.search(r'id="begin-button"[^>]*disabled', page)

    assert pressed(operating, FAILED).status_code == 403
    assert not BulkOperation.objects.exists()


def test_a_second_operation_on_the_same_is_called_out(operating: Client) -> None:
    pressed(operating, FAILED)

    page = operating.read(FAILED)
    assert "An operation on the same goes on already." in page


# The operation


@pytest.fixture
def operation(failed: list[ProcessInstance], operator: User) -> BulkOperation:
    """One on three processes, which will fail again."""
    return frozen(begun(operator, {"cause": cause()}, 3, selection="failures"))


def place_of(operation: BulkOperation) -> str:
    return f"/operations/{operation.pk}/"


def test_s6_3_the_page_has_each_verdict(operation: BulkOperation, read: Read) -> None:
    worked_on(operation)
    page = read(place_of(operation))

    for said in ("<b>operator</b>", "the line is back", "3 of 3 have their verdict"):
        assert said in page
    assert page.count('data-verdict="failed"') == 4  # with the tab
    assert verdicts(operation) == {"failed": 3}


def test_s6_3_a_filter_that_only_another_version_knows_is_shown_as_it_is_stored(
    operator: User, read: Read
) -> None:
    operation = begun(operator, {"status": "failed"}, 3)
    operation.about["shade"] = "blue"
    operation.save()

    page = read(f"/operations/{operation.pk}/")

    assert "Status: <b>" in page
    assert "shade: <b>blue</b>" in page


def test_stored_filters_are_read_exactly_as_they_are_stored() -> None:
    about = {"owner": " bob", "status": "x" * 250}

    assert Filters.from_stored(about).stored() == about


CONDITION = "destination = both"


def test_s12_1_who_may_see_data_sees_a_condition_on_it_and_nobody_else(
    failed: list[ProcessInstance], operator: User, read: Read
) -> None:
    about = {"definition": "order-listing", "where": CONDITION}
    operation = frozen(begun(operator, about, 3, action="escalate"))
    guard = of(person("guard", "view_processinstance"))

    page, whole = guard.read(place_of(operation)), read(place_of(operation))

    assert "both" not in page
    assert "Definition: <b>order-listing</b>" in page
    assert "Data: <b>not yours to see</b>" in page
    assert "The list as it is now" not in page  # it would have others too
    for process in failed:
        assert f'href="/processes/{process.pk}/"' in page
    assert f"Data: <b>{CONDITION}</b>" in whole
    assert "where=destination+%3D+both" in whole
    assert "not yours to see" not in whole


def test_s12_1_who_may_see_events_sees_those_of_an_operation_and_nobody_else(
    operator: User, read: Read
) -> None:
    event = ListedOnInternal("A-9")
    send_event(event, id="lost-1", source="exchange", correlation_key="A-9")
    run()
    InboxEvent.objects.filter(process=None).update(verdict="unrouted")
    a_moment()
    about = {"type": "ListedOnInternal", "verdict": "unrouted"}
    operation = begun(operator, about, 1, action="redeliver", selection="events")
    error = worked_on(operation).items.get().detail
    guard = person("guard", "view_processinstance", "view_data_processinstance")

    page, whole = of(guard).read(place_of(operation)), read(place_of(operation))

    for told in ("ListedOnInternal", "lost-1", "Unrouted", error):
        assert told
        assert told not in page
    assert "an event" in page
    assert "Type: <b>not yours to see</b>" in page
    assert 'href="/events/' not in page
    assert "ListedOnInternal <code>lost-1</code>" in whole
    assert "Type: <b>ListedOnInternal</b>" in whole
    assert error in whole


def test_s6_3_items_are_found_by_verdict_and_in_pages(
    operation: BulkOperation, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    def items(query: str) -> list[str]:
        return re.findall(r'<tr id="item-(\d+)"', read(f"{place_of(operation)}{query}"))

    monkeypatch.setattr(pages, "PAGE", 2)
    one = operation.items.latest("pk")
    operation.items.filter(pk=one.pk).update(verdict="skipped")
    BulkOperation.objects.update(skipped=1)
    assert items("?verdict=skipped") == [str(one.pk)]

    [after] = re.findall(r'href="(\?after=\d+)"', read(place_of(operation)))
    pks = items("") + items(after)
    assert len(pks) == len(set(pks)) == 3


@cases(
    "name, before, after",
    ("pause_bulk", "running", "paused"),
    ("resume_bulk", "paused", "running"),
    ("cancel_bulk", "running", "cancelled"),
)
def test_s6_3_its_buttons_act_and_are_audited(
    name: str, before: str, after: str, operation: BulkOperation, operating: Client
) -> None:
    BulkOperation.objects.update(status=before)
    given = {"key": uuid4().hex}
    for _ in range(2):
        place = f"{place_of(operation)}{name}/"
        assert operating.post(place, given, headers=BY_SCRIPT).status_code == 200

    operation.refresh_from_db()
    assert operation.status == after
    assert OperatorAction.objects.get(action=name).bulk == operation


def test_s6_3_a_button_of_a_stale_page_is_refused_with_why_and_others_are_not_found(
    operation: BulkOperation, operating: Client
) -> None:
    worked_on(operation)
    stale, unknown = (
        operating.post(
            f"{place_of(operation)}{name}/", {"key": uuid4().hex}, headers=BY_SCRIPT
        )
        for name in ("pause_bulk", "start_bulk")
    )

    assert (stale.status_code, unknown.status_code) == (409, 404)
    assert "This operation is completed" in stale.content.decode()
    operating.read(f"/operations/{uuid4()}/", status=404)


def test_s6_3_what_failed_is_done_once_more_on_a_page_of_its_own(
    operation: BulkOperation, operating: Client
) -> None:
    worked_on(operation)
    given = {"key": uuid4().hex, "reason": "once more"}
    answer = operating.post(f"{place_of(operation)}repeat_bulk/", given)

    assert last().again_of == operation
    assert answer["Location"] == place_of(last())
    assert f'href="{place_of(last())}"' in operating.read(place_of(operation))


def test_s5_3_newcomers_are_called_out(operation: BulkOperation, read: Read) -> None:
    worked_on(operation)  # those that failed again are no newcomers
    assert 'id="newcomers"' not in read(place_of(operation))
    fail(2)

    assert "2 new failures of this cause" in read(place_of(operation))
    group = read(f"/failures/{cause()}/")
    assert "2 failures came since" in group
    assert f'href="{place_of(operation)}"' in group


def test_s5_4_a_group_that_is_over_says_what_it_was_resolved_by(
    operation: BulkOperation, read: Read
) -> None:
    address = f"/failures/{cause()}/"
    Incident.objects.update(resolved_at=timezone.now())
    page = read(address)
    Incident.objects.update(resolved_at=None)  # as it is

    assert "None of this cause is open any more." in page
    assert f'href="{place_of(operation)}"' in page
    assert "Resolved by" in page


def test_what_was_left_out_is_said(operator: User, read: Read) -> None:
    operation = frozen(begun(operator, {"cause": cause()}, 5, selection="failures"))

    assert "2 of those shown are not among them" in read(place_of(operation))


def test_operations_are_listed_newest_first(
    operation: BulkOperation, read: Read, operator: User
) -> None:
    other = begun(operator, {"status": "failed"}, 3, action="escalate")
    page = read("/operations/")

    assert 0 < page.index(place_of(other)) < page.index(place_of(operation))
    assert read("/operations/?before=nonsense")


@cases("text", *HARMFUL)
def test_hostile_text_is_text(text: str, operation: BulkOperation, read: Read) -> None:
    BulkOperation.objects.update(reason=text, detail=text, actor_name=text[:150])
    operation.items.update(detail=text[:500])
    ProcessInstance.objects.update(summary=text[:200])
    for address in (place_of(operation), "/operations/", FAILED):
        assert planted(read(address)) == []
