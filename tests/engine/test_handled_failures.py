"""S5: failures that people have marked as handled or assigned, how they come, and what has resolved them."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from examples.order_listing.messages import Destination, RequestExternalCreation
from examples.order_listing.orders import place_order
from monitoring.queries import handled as marks
from monitoring.queries import trends
from monitoring.queries.failures import failure_groups, largest_group, number_open
from monitoring.queries.health import health
from monitoring.queries.resolved import resolved_page
from monitoring.queries.trends import trends as trends_of
from orchestrator import Answer, CommandContext
from orchestrator.engine.operations import (
    ActionRequest,
    assign_failures,
    mark_handled,
    skip_command,
    unmark_handled,
)
from orchestrator.engine.operations import failures as engine
from orchestrator.exceptions import (
    OperationRefused,
    PermissionMissing,
    StaleRevision,
)
from orchestrator.models import (
    FailureMark,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
)
from orchestrator.testing import replaced, run
from tests.services.bulk import begun, worked_on

pytestmark = pytest.mark.django_db

BEYOND = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]


def fail(number: int) -> list[UUID]:
    """Have so many more orders fail for one cause; return their ids."""
    count = ProcessInstance.objects.count()
    placed = [
        place_order(Destination.BOTH, f"{n} MWh", f"F-{count + n}")
        for n in range(number)
    ]
    run()
    return [one.process_id for one in placed]


@pytest.fixture(scope="module", autouse=True)
def failed(module_db: None) -> list[UUID]:
    """Three orders that failed for one cause."""
    return fail(3)


@pytest.fixture
def signed_in(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client


@pytest.fixture
def read(signed_in: Client) -> Callable[[str], str]:
    def read_page(address: str) -> str:
        answer = signed_in.get(address)
        assert answer.status_code == 200
        return answer.content.decode()

    return read_page


def cause() -> str:
    return str(newest().fingerprint)


def cause_of(process: UUID) -> str:
    return str(Incident.objects.filter(instance=process).earliest("pk").fingerprint)


def newest() -> Incident:
    found: Incident = Incident.objects.open().latest("pk")
    return found


def other(number: int, fingerprint: str) -> None:
    """Have so many open failures of another cause, of the newest process."""
    last = Incident.objects.latest("pk")
    Incident.objects.bulk_create(
        Incident(
            kind="command_failed",
            instance_id=last.instance_id,
            message="E: another",
            fingerprint=fingerprint,
            opened_at=last.opened_at,
        )
        for _ in range(number)
    )


def asked(actor: User, **more: Any) -> ActionRequest:
    return ActionRequest(actor, uuid4(), "the exchange knows of it", **more)


def mark(actor: User, days: int | None = None, **more: Any) -> FailureMark:
    found = newest()
    mark_handled(found.fingerprint, found.pk, days, request=asked(actor, **more))
    return FailureMark.objects.get(pk=found.fingerprint)


def listed() -> list[str]:
    return [group.newest.fingerprint for group in failure_groups().rows]


# Handled


def test_s5_3_what_is_handled_leaves_the_inbox_and_every_number_of_it(
    failed: list[UUID], operator: User, read: Callable[[str], str]
) -> None:
    other(2, "f" * 64)
    handled = cause_of(failed[0])
    last = Incident.objects.filter(fingerprint=handled).latest("pk")
    mark_handled(handled, last.pk, None, request=asked(operator))

    assert listed() == ["f" * 64]
    assert number_open().number == health().failures.number == 2
    assert number_open("order-listing").number == 2
    largest = largest_group()
    assert largest is not None
    assert largest.newest.fingerprint == "f" * 64
    assert read("/failures/").count("<tr id=") == 1
    page = read("/failures/?show=handled")
    assert f'href="/failures/{handled}/"' in page
    assert "handled by operator" in page
    assert "the exchange knows of it" in page
    assert [one.status for one in ProcessInstance.objects.all()] == ["failed"] * 3


def test_s5_3_the_first_page_counts_what_its_list_has(
    operator: User, read: Callable[[str], str]
) -> None:
    other(2, "0" * 64)
    other(1, "f" * 64)
    mark(operator)  # the last of the three

    assert sum(group.number.number for group in failure_groups().rows) == 5
    assert number_open().number == 5
    assert "5 failures" in read("/failures/")


def test_s5_3_it_is_back_when_one_more_fails(
    operator: User, read: Callable[[str], str]
) -> None:
    mark(operator)
    assert listed() == []
    fail(1)

    assert listed() == [cause()]
    assert number_open().number == 4
    page = read("/failures/")
    assert "is back" in page
    assert "operator had marked it as handled" in page


def test_s5_3_it_is_back_when_its_time_is_over(
    operator: User, read: Callable[[str], str]
) -> None:
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
    with pytest.raises(StaleRevision, match="Another one has failed"):
        mark_handled(cause(), seen, None, request=asked(operator))
    assert not FailureMark.objects.exists()
    refused = OperatorAction.objects.get()
    assert (refused.action, refused.result) == ("mark_handled", "refused")

    mark(operator)
    with pytest.raises(StaleRevision, match="meanwhile"):
        mark(operator, expected_revision=0)
    assert FailureMark.objects.get().revision == 1


def test_s5_3_pressed_twice_it_is_marked_once(operator: User) -> None:
    request = asked(operator, expected_revision=0)
    first, second = (
        mark_handled(cause(), newest().pk, None, request=request) for _ in range(2)
    )

    assert first == second
    assert FailureMark.objects.get().revision == 1
    row = OperatorAction.objects.get()
    told = {"cause": cause(), "handled": True, "until": None, "owner": ""}
    assert {name: row.after[name] for name in told} == told
    assert row.after.keys() - told == {"given"}
    assert row.reason == "the exchange knows of it"


def test_s5_3_a_key_is_for_one_group_alone(operator: User) -> None:
    known, one = cause(), newest().pk
    other(1, "b" * 64)
    two = Incident.objects.latest("pk").pk
    done, refused = asked(operator), asked(operator)
    mark_handled(known, one, None, request=done)
    with pytest.raises(StaleRevision):
        mark_handled(known, one - 1, None, request=refused)

    for used in (done, refused):
        with pytest.raises(OperationRefused, match="used for another action"):
            mark_handled("b" * 64, two, None, request=used)
    with pytest.raises(OperationRefused, match="Another one has failed"):
        mark_handled(known, one - 1, None, request=refused)
    with pytest.raises(OperationRefused, match="used for another action"):
        mark_handled(known, one, None, request=refused)

    assert [mark.pk for mark in FailureMark.objects.handled()] == [known]


def test_s5_3_it_needs_a_cause_a_reason_and_a_permission_and_is_taken_back(
    viewer: User, operator: User
) -> None:
    with pytest.raises(PermissionMissing):
        mark(viewer)
    without = ActionRequest(operator, uuid4())
    with pytest.raises(OperationRefused, match="say why"):
        mark_handled(cause(), newest().pk, None, request=without)
    with pytest.raises(OperationRefused, match="None of this cause"):
        mark_handled("never seen", 1, None, request=asked(operator))
    assert not FailureMark.objects.exists()

    mark(operator)
    known = marks.handling_of([cause(), "other"])
    assert list(known) == [cause()]
    assert (known[cause()].in_force, known[cause()].is_back) == (True, False)
    unmark_handled(cause(), request=asked(operator))
    assert listed() == [cause()]
    with pytest.raises(OperationRefused, match="not marked"):
        unmark_handled(cause(), request=asked(operator))


def test_s5_3_no_more_are_marked_than_pages_can_look_for(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "MOST_HANDLED", 1)
    mark(operator)
    mark(operator)  # the same once more
    other(1, "e" * 64)
    with pytest.raises(OperationRefused, match="1 groups are marked"):
        mark(operator)


def test_s5_3_a_flood_that_is_handled_hides_no_other(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cause()
    other(40, "b" * 64)
    mark(operator)
    for name in ("MANY", "CAP", "FEW"):
        monkeypatch.setattr(f"monitoring.queries.failures.{name}", 10)

    assert listed() == [own]
    assert number_open().number == 3


def test_s5_3_a_group_is_assigned(operator: User, read: Callable[[str], str]) -> None:
    assign_failures(cause(), "operator", request=asked(operator))

    assert listed() == [cause()]
    for page in ("/failures/", f"/failures/{cause()}/"):
        assert re.search(r"Assigned to <b>operator</b>", read(page))
    with pytest.raises(OperationRefused, match="nobody with the name"):
        assign_failures(cause(), "nemo", request=asked(operator))


# Its buttons


def form(**given: Any) -> dict[str, Any]:
    return {"key": uuid4().hex, "reason": "known", "revision": 0, **given}


def test_s5_3_the_buttons_of_a_group_act(
    signed_in: Client, read: Callable[[str], str]
) -> None:
    page = read(f"/failures/{cause()}/")
    assert f'data-given="{newest().pk}"' in page
    address = f"/failures/{cause()}/mark_handled/"
    given = form(newest=newest().pk, days="")
    for _ in range(2):
        answer = signed_in.post(address, given, headers={"HX-Request": "true"})
        assert answer.status_code == 200
        assert "handled by operator" in answer.content.decode()

    assert OperatorAction.objects.count() == 1
    assert 'id="unmark_handled-button"' in read(f"/failures/{cause()}/")


def test_s5_3_a_refusal_is_said(signed_in: Client) -> None:
    address = f"/failures/{cause()}/mark_handled/"
    for given, status in (
        (form(newest=newest().pk - 1), 409),
        (form(newest=newest().pk, reason=""), 400),
        (form(newest=newest().pk, days="-1"), 400),
        (form(newest="x"), 400),
    ):
        answer = signed_in.post(address, given, headers={"HX-Request": "true"})
        assert answer.status_code == status
    assert signed_in.post(f"/failures/{cause()}/retry/", form()).status_code == 404

    assert not FailureMark.objects.exists()


def test_s5_3_who_may_not_sees_why(client: Client, viewer: User) -> None:
    client.force_login(viewer)
    page = client.get(f"/failures/{cause()}/").content.decode()
    assert re.search(r'id="mark_handled-button"[^>]*aria-disabled="true"', page)

    given = form(newest=newest().pk)
    answer = client.post(f"/failures/{cause()}/mark_handled/", given)
    assert answer.status_code == 403


def test_opening_the_lists_writes_nothing_and_the_audit_leads_to_the_group(
    operator: User, read: Callable[[str], str]
) -> None:
    for page in (f"/failures/{cause()}/", "/failures/?show=handled"):
        read(page)
    assert not FailureMark.objects.exists()
    assert not OperatorAction.objects.exists()

    mark(operator)
    assert f'href="/failures/{cause()}/"' in read("/audit/")


# How they come


def test_s5_1_a_row_has_its_trend_and_its_versions(read: Callable[[str], str]) -> None:
    now = timezone.now()
    first, second, third = Incident.objects.order_by("pk")
    ago = {first: timedelta(hours=5), second: timedelta(hours=2), third: timedelta()}
    for incident, time in ago.items():
        Incident.objects.filter(pk=incident.pk).update(opened_at=now - time)
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
    ago = timezone.now() - timedelta(days=3, hours=1)
    Incident.objects.filter(pk=first.pk).update(opened_at=ago)
    found = trends_of([cause()])[cause()]

    assert found.by_day
    assert (found.each[-1], found.each[-4]) == (2, 1)


def test_s5_1_no_more_are_looked_at_than_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trends, "NEWEST", 2)
    found = trends_of([cause()])[cause()]

    assert (found.number, found.part) == (2, True)


# What was resolved, and by what


def test_s5_4_what_was_resolved_is_found_with_the_person_who_did_it(
    operator: User, read: Callable[[str], str]
) -> None:
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


def test_s5_4_what_was_resolved_by_an_operation_leads_to_it(
    operator: User, read: Callable[[str], str]
) -> None:
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


def test_s5_4_pages_of_what_was_resolved_follow_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("monitoring.queries.resolved.PAGE", 2)
    for fingerprint in "abcde":
        other(2, fingerprint)
    Incident.objects.filter(fingerprint__in="abcde").update(resolved_at=timezone.now())
    seen, before = [], ""
    while True:
        page = resolved_page(before)
        seen += [group.last.fingerprint for group in page.rows]
        before = page.older
        if not before:
            break

    assert sorted(seen) == list("abcde")
    # In their own zones the calendar has the last two, and no database.
    for at in (
        "nonsense",
        *(f"{at}_1" for at in ("2026-99-99T00:00:00+00:00", *BEYOND)),
    ):
        assert resolved_page(at).rows, at
