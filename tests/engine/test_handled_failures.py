"""S5: failures that people have marked as handled or assigned, how they come, and what has resolved them."""

import re
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from examples.order_listing.messages import Destination, RequestExternalCreation
from examples.order_listing.orders import place_order
from monitoring.attention.health import health
from monitoring.lists.failures import failure_marks as marks
from monitoring.lists.failures import trends
from monitoring.lists.failures.failures import (
    count_open_failures,
    failure_groups,
    largest_group,
)
from monitoring.lists.failures.resolved_failures import resolved_page
from monitoring.lists.failures.trends import trends as trends_of
from orchestrator import Answer, CommandContext
from orchestrator.engine.operations import (
    ActionRequest,
    assign_failures,
    mark_handled,
    skip_command,
    unmark_handled,
)
from orchestrator.engine.operations.desk import failures as engine
from orchestrator.exceptions import PermissionMissing, StaleRevision
from orchestrator.models import (
    FailureMark,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
)
from orchestrator.testing import replaced, run
from tests.services.bulk import begun, worked_on
from tests.services.client import Client, Read
from tests.services.doing import refused

pytestmark = pytest.mark.django_db

REASON = "the exchange knows of it"
BEYOND = ["0001-01-01T00:00:00+14:00_1", "9999-12-31T23:59:59-14:00_1"]


def fail(number: int) -> list[UUID]:
    """Have so many more orders fail for one cause; return their ids."""
    first = ProcessInstance.objects.count()
    numbers = range(first, first + number)
    placed = [place_order(Destination.BOTH, f"{n} MWh", f"F-{n}") for n in numbers]
    run()
    return [one.process_id for one in placed]


@pytest.fixture(scope="module", autouse=True)
def failed(module_db: None) -> list[UUID]:
    """Three orders that failed for one cause."""
    return fail(3)


def cause() -> str:
    return str(newest().fingerprint)


def newest() -> Incident:
    found: Incident = Incident.objects.open().latest("pk")
    return found


def other(number: int, fingerprint: str) -> None:
    """Have so many open failures of another cause, of the newest process."""
    last = Incident.objects.latest("pk")
    about = {"instance_id": last.instance_id, "opened_at": last.opened_at}
    told = {"kind": "command_failed", "message": "E: another"}
    Incident.objects.bulk_create(
        Incident(fingerprint=fingerprint, **about, **told) for _ in range(number)
    )


def asked(actor: User, **more: Any) -> ActionRequest:
    return ActionRequest(**{"actor": actor, "key": uuid4(), "reason": REASON, **more})


def mark(actor: User, days: int | None = None, **more: Any) -> FailureMark:
    """Have the group of the newest failure marked as handled."""
    found = newest()
    mark_handled(found.fingerprint, found.pk, days, request=asked(actor, **more))
    return FailureMark.objects.get(pk=found.fingerprint)


def listed() -> list[str]:
    return [group.newest.fingerprint for group in failure_groups().rows]


# Handled


def test_s5_3_what_is_handled_leaves_every_number(operator: User, read: Read) -> None:
    handled = mark(operator).pk
    other(2, "f" * 64)

    assert listed() == ["f" * 64]
    assert count_open_failures().number == health().failures.number == 2
    assert count_open_failures("order-listing").number == 2
    largest = largest_group()
    assert largest is not None
    assert largest.newest.fingerprint == "f" * 64
    assert read("/failures/").count("<tr id=") == 1
    page = read("/failures/?show=handled")
    for said in (f'href="/failures/{handled}/"', "handled by operator", REASON):
        assert said in page
    assert [one.status for one in ProcessInstance.objects.all()] == ["failed"] * 3


def test_s5_3_the_first_page_counts_what_it_lists(operator: User, read: Read) -> None:
    other(2, "0" * 64)
    other(1, "f" * 64)
    mark(operator)  # the last of the three

    assert sum(group.number.number for group in failure_groups().rows) == 5
    assert count_open_failures().number == 5
    assert "5 failures" in read("/failures/")


def test_s5_3_it_is_back_when_one_more_fails(operator: User, read: Read) -> None:
    mark(operator)
    assert listed() == []
    fail(1)

    assert listed() == [cause()]
    assert count_open_failures().number == 4
    page = read("/failures/")
    assert "is back" in page
    assert "operator had marked it as handled" in page


def test_s5_3_it_is_back_when_its_time_is_over(operator: User, read: Read) -> None:
    found = mark(operator, days=3)
    assert found.until is not None
    assert timedelta(days=2) < found.until - timezone.now() <= timedelta(days=3)
    assert listed() == []
    FailureMark.objects.update(until=timezone.now() - timedelta(seconds=1))

    assert listed() == [cause()]
    assert "is back" in read(f"/failures/{cause()}/")


def test_s5_3_a_page_that_is_not_up_to_date_is_refused(operator: User) -> None:
    seen = newest().pk
    fail(1)
    stale: dict[str, Any] = {"error": StaleRevision}
    refused("Another one has failed", mark_handled, cause(), seen, None, **stale)
    assert not FailureMark.objects.exists()
    row = OperatorAction.objects.get()
    assert (row.action, row.result) == ("mark_handled", "refused")

    mark(operator)
    last, stale["expected_revision"] = newest().pk, 0
    refused("meanwhile", mark_handled, cause(), last, None, **stale)
    assert FailureMark.objects.get().revision == 1


def test_s5_3_pressed_twice_it_is_marked_once(operator: User) -> None:
    request = asked(operator, expected_revision=0)
    press = partial(mark_handled, cause(), newest().pk, None, request=request)
    first, second = press(), press()

    assert first == second
    assert FailureMark.objects.get().revision == 1
    row = OperatorAction.objects.get()
    told = {"cause": cause(), "handled": True, "until": None, "owner": ""}
    assert {name: row.after[name] for name in told} == told
    assert row.after.keys() - told == {"given"}
    assert row.reason == REASON


def test_s5_3_a_key_is_for_one_group_alone(operator: User) -> None:
    known, one, done, no = cause(), newest().pk, uuid4(), uuid4()
    mark(operator, key=done)
    other(1, "b" * 64)
    two = Incident.objects.latest("pk").pk

    another, stale = "used for another action", "Another one has failed"
    for group, newest_seen, key, why in (
        (known, one - 1, no, stale),
        ("b" * 64, two, done, another),
        ("b" * 64, two, no, another),
        (known, one - 1, no, stale),
        (known, one, no, another),
    ):
        refused(why, mark_handled, group, newest_seen, None, key=key)

    assert [mark.pk for mark in FailureMark.objects.handled()] == [known]


def test_s5_3_it_needs_a_reason_and_a_permission_and_is_taken_back(
    viewer: User, operator: User
) -> None:
    group = mark_handled, cause(), newest().pk, None
    refused("", *group, error=PermissionMissing, actor=viewer)
    refused("say why", *group, reason="")
    refused("None of this cause", mark_handled, "never seen", 1, None)
    assert not FailureMark.objects.exists()

    mark(operator)
    known = marks.handling_of([cause(), "other"])
    assert list(known) == [cause()]
    assert (known[cause()].in_force, known[cause()].is_back) == (True, False)
    unmark_handled(cause(), request=asked(operator))
    assert listed() == [cause()]
    refused("not marked", unmark_handled, cause())


def test_s5_3_no_more_are_marked_than_pages_can_look_for(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MOST_HANDLED", 1)
    mark(operator)
    mark(operator)  # the same once more
    other(1, "e" * 64)
    refused("1 groups are marked", mark_handled, cause(), newest().pk, None)


def test_s5_3_a_handled_flood_hides_no_other(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cause()
    other(40, "b" * 64)
    mark(operator)
    for name in ("MANY", "CAP", "FEW"):
        monkeypatch.setattr(f"monitoring.lists.failures.failures.{name}", 10)

    assert listed() == [own]
    assert count_open_failures().number == 3


def test_s5_3_a_group_is_assigned(operator: User, read: Read) -> None:
    assign_failures(cause(), "operator", request=asked(operator))

    assert listed() == [cause()]
    for page in ("/failures/", f"/failures/{cause()}/"):
        assert re.search(r"Assigned to <b>operator</b>", read(page))
    refused("no active user has the name", assign_failures, cause(), "nemo")


# Its buttons


def press(client: Client, action: str = "mark_handled", **given: Any) -> Any:
    """Press a button of the group as the page does."""
    form = {"key": uuid4().hex, "reason": "known", "revision": 0, **given}
    address = f"/failures/{cause()}/{action}/"
    return client.post(address, form, headers={"HX-Request": "true"})


def test_s5_3_a_refusal_is_said(operating: Client) -> None:
    last = newest().pk
    for status, given in (
        (409, {"newest": last - 1}),
        (400, {"newest": last, "reason": ""}),
        (400, {"newest": last, "days": "-1"}),
        (400, {"newest": "x"}),
        (404, {"action": "retry"}),
    ):
        assert press(operating, **given).status_code == status

    assert not FailureMark.objects.exists()


def test_s5_3_who_may_not_sees_why(viewing: Client) -> None:
    page = viewing.read(f"/failures/{cause()}/")
    assert re.search(r'id="mark_handled-button"[^>]*aria-disabled="true"', page)

    assert press(viewing, newest=newest().pk).status_code == 403


def test_lists_write_nothing_the_audit_has_links(operator: User, read: Read) -> None:
    for page in (f"/failures/{cause()}/", "/failures/?show=handled"):
        read(page)
    assert not FailureMark.objects.exists()
    assert not OperatorAction.objects.exists()

    mark(operator)
    assert f'href="/failures/{cause()}/"' in read("/audit/")


# How they come


def test_s5_1_a_row_has_its_trend_and_its_versions(read: Read) -> None:
    now = timezone.now()
    for incident, hours in zip(Incident.objects.order_by("pk"), (5, 2, 0), strict=True):
        incident.opened_at = now - timedelta(hours=hours)
        incident.save()
    found = trends_of([cause()])[cause()]

    assert not found.by_day
    assert sum(found.each) == 3
    assert [found.each[hour] for hour in (-1, -3, -6)] == [1, 1, 1]
    [version] = found.versions
    page = read("/failures/")
    assert '<svg class="spark"' in page
    assert re.search(rf"Version\s+{version}\b", page)


def test_s5_1_older_ones_are_told_by_day() -> None:
    first = Incident.objects.earliest("pk")
    first.opened_at -= timedelta(days=3, hours=1)
    first.save()
    found = trends_of([cause()])[cause()]

    assert found.by_day
    assert (found.each[-1], found.each[-4]) == (2, 1)


def test_s5_1_only_the_newest_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trends, "NEWEST", 2)
    found = trends_of([cause()])[cause()]

    assert (found.number, found.part) == (2, True)


# What was resolved, and by what


def test_s5_4_what_was_resolved_names_who_did_it(operator: User, read: Read) -> None:
    fingerprint = cause()
    for command in IssuedCommand.objects.filter(status="failed"):
        assert command.instance_id is not None
        skip_command(command.instance_id, str(command.pk), request=asked(operator))

    assert listed() == []
    [group] = resolved_page().rows
    assert (group.last.fingerprint, group.number) == (fingerprint, 3)
    assert group.by is not None
    assert (group.by.action, group.by.actor) == ("skip_command", operator)
    page = read("/failures/?show=resolved")
    assert f'href="/failures/{fingerprint}/"' in page
    assert "<b>operator</b>" in page


def taken(command: RequestExternalCreation, context: CommandContext) -> Answer:
    """The exchange is back."""
    return Answer("HTTP 202")


def test_s5_4_what_an_operation_mended_leads_to_it(operator: User, read: Read) -> None:
    about = {"cause": cause()}
    with replaced("RequestExternalCreation", taken):
        operation = worked_on(begun(operator, about, 3, selection="failures"))

    assert operation.done == 3
    for page in ("/failures/?show=resolved", "/audit/?action=retry"):
        assert f'href="/operations/{operation.pk}/"' in read(page)


def test_s5_4_what_has_failed_again_is_not_resolved(operator: User) -> None:
    worked_on(begun(operator, {"cause": cause()}, 3, selection="failures"))

    assert Incident.objects.exclude(resolved_at=None).exists()
    assert resolved_page().rows == []
    assert listed() == [cause()]


def test_s5_4_pages_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitoring.lists.failures.resolved_failures.PAGE", 2)
    for fingerprint in "abcde":
        other(2, fingerprint)
    Incident.objects.filter(fingerprint__in="abcde").update(resolved_at=timezone.now())
    seen, before = list[str](), ""
    while before or not seen:
        page = resolved_page(before)
        seen += [group.last.fingerprint for group in page.rows]
        before = page.older

    assert sorted(seen) == list("abcde")
    # In their own zones the calendar has the last two, and no database.
    for at in ("nonsense", "2026-99-99T00:00:00+00:00_1", *BEYOND):
        assert resolved_page(at).rows, at
