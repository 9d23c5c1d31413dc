"""S8, what can be done about what waits: a deadline put off, an escalation acknowledged, a stalled process nudged."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring.queries.stalled import stalled_processes
from orchestrator import start_process
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import (
    acknowledge,
    assign,
    escalate,
    extend,
    nudge,
    pause,
    unpause,
)
from orchestrator.exceptions import OperationRefused, PermissionMissing, StaleRevision
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import pass_time, run
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Inquiry
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.messages import ParcelDelivered, ParcelPacked
from tests.apps.process_managers.together import raised, together
from tests.services import emptying
from tests.services.asking import asked
from tests.services.invariants import broken

__all__ = ["helpdesk"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk", "parcels")]

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


@pytest.fixture
def site(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client


def open_visit(process: ProcessInstance) -> StepRun:
    rows = process.step_runs.filter(finished_at=None).exclude(kind="join")
    return rows.get()


def asking() -> ProcessInstance:
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    drain()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def reminders() -> int:
    return IssuedCommand.objects.filter(type="RemindPacker").count()


# A deadline is put off


def test_s8_3_a_deadline_and_those_after_it_pass_as_much_later() -> None:
    parcel = place()
    before = open_visit(parcel)

    action = extend(parcel.pk, before.pk, 90, request=asked())

    after = open_visit(parcel)
    assert before.wake_at is not None
    assert after.wake_at == before.wake_at + 90 * MINUTE
    assert action.after["extended"]["Packing"] == {
        "from": before.wake_at.isoformat(),
        "until": after.wake_at.isoformat(),
    }
    assert Checkpoint.objects.get(revision=2).cause == f"operator:{action.key}"
    pass_time(2 * HOUR)
    assert reminders() == 0
    pass_time(31 * MINUTE)
    assert reminders() == 1
    pass_time(118 * MINUTE)  # its third hour would have been over long ago
    assert ProcessInstance.objects.get().escalation_level == 0
    pass_time(3 * MINUTE)
    assert ProcessInstance.objects.get().escalation_level == 1


def test_s8_3_extended_twice_is_the_sum_and_pressed_twice_is_once() -> None:
    parcel, press = place(), asked()
    visit = open_visit(parcel)
    for _ in range(2):
        extend(parcel.pk, visit.pk, 30, request=press)
    extend(parcel.pk, visit.pk, 15, request=asked())

    now = open_visit(parcel)
    assert visit.wake_at is not None
    assert now.wake_at == visit.wake_at + 45 * MINUTE
    assert now.extended == 45 * MINUTE
    assert ProcessInstance.objects.get().revision == 3

    # One that is over and not carried out counts from now.
    late = timezone.now() - 10 * MINUTE
    StepRun.objects.filter(pk=visit.pk).update(wake_at=late)
    extend(parcel.pk, visit.pk, 20, request=asked())
    now = open_visit(parcel)
    assert now.wake_at is not None
    assert abs(now.wake_at - timezone.now() - 20 * MINUTE) < 20 * SECOND


def test_s8_3_of_a_paused_process_what_is_left_is_more() -> None:
    parcel = place()
    pause(parcel.pk, True, request=asked())
    left = open_visit(parcel).remaining

    extend(parcel.pk, open_visit(parcel).pk, 60, request=asked())

    assert left is not None
    assert open_visit(parcel).remaining == left + HOUR
    pass_time(10 * HOUR)
    unpause(parcel.pk, True, request=asked())
    pass_time(119 * MINUTE)
    assert reminders() == 0
    pass_time(2 * MINUTE)
    assert reminders() == 1


def test_s8_3_the_deadline_of_a_question_is_put_off() -> None:
    process = asking()
    run = open_visit(process)
    assert run.kind == "ask"

    extend(process.pk, run.pk, 24 * 60, request=asked())

    pass_time(timedelta(days=2, hours=1))
    assert open_visit(process).node == "verdict"
    pass_time(timedelta(days=1))
    assert not process.step_runs.filter(node="verdict", finished_at=None).exists()


def test_s8_3_what_cannot_be_extended_is_refused(viewer: User) -> None:
    parcel = place()
    left = open_visit(parcel)
    for minutes in (0, -5, 525_601):
        with pytest.raises(OperationRefused, match="extend it by 1 to 525,600 minutes"):
            extend(parcel.pk, left.pk, minutes, request=asked())
    with pytest.raises(PermissionMissing):
        extend(parcel.pk, left.pk, 5, request=asked(actor=viewer))
    rows = StepRun.objects.filter(pk=left.pk)
    rows.update(owner="worker-1", attempt=1)
    with pytest.raises(OperationRefused, match="the deadline of Packing has passed"):
        extend(parcel.pk, left.pk, 5, request=asked())
    rows.update(owner="", attempt=0)

    tell(parcel, ParcelPacked(3))
    with pytest.raises(StaleRevision, match="has changed since the page was loaded"):
        extend(parcel.pk, left.pk, 5, request=asked(expected_revision=1))
    with pytest.raises(StaleRevision, match="Packing is over meanwhile"):
        extend(parcel.pk, left.pk, 5, request=asked())
    assert OperatorAction.objects.filter(result="refused").count() == 7


def test_s8_3_what_has_no_deadline_ahead_is_not_extended() -> None:
    parcel = underway()
    pass_time(73 * HOUR)
    parcel.refresh_from_db()
    assert parcel.step == "Missing"
    with pytest.raises(OperationRefused, match="Missing has no deadline ahead"):
        extend(parcel.pk, open_visit(parcel).pk, 5, request=asked())

    tell(parcel, ParcelDelivered("P-1"))
    last = parcel.step_runs.latest("pk")
    with pytest.raises(OperationRefused, match="The process has ended"):
        extend(parcel.pk, last.pk, 5, request=asked())


@pytest.mark.django_db(transaction=True)
def test_s8_3_an_extension_and_the_deadline_itself_do_not_get_in_each_others_way() -> (
    None
):
    for number in range(4):
        parcel = place(f"P-{number}")
        visit = open_visit(parcel)
        StepRun.objects.filter(pk=visit.pk).update(wake_at=timezone.now())
        press = partial(extend, parcel.pk, visit.pk, 60, request=asked())

        outcomes = together(drain, press)

        assert all(isinstance(one, OperationRefused) for one in raised(outcomes))
        run()
        after = open_visit(parcel)
        fired = IssuedCommand.objects.filter(instance=parcel, type="RemindPacker")
        assert fired.count() == after.deadlines_fired
        assert after.deadlines_fired or after.extended


# An escalation is acknowledged


def test_s8_3_an_escalation_is_acknowledged_by_its_new_owner(operator: User) -> None:
    parcel = place()
    escalate(parcel.pk, request=asked())

    action = acknowledge(parcel.pk, request=asked())

    parcel.refresh_from_db()
    assert (parcel.escalation_level, parcel.owner) == (0, operator)
    assert not ProcessInstance.objects.escalated().exists()
    assert action.before["escalation_level"] == 1
    assert (action.after["escalation_level"], action.after["owner"]) == (0, "operator")
    pass_time(3 * HOUR + MINUTE)
    parcel.refresh_from_db()
    assert parcel.escalation_level == 1


def test_s8_3_an_owner_stays_and_what_is_not_escalated_is_not_acknowledged(
    viewer: User,
) -> None:
    parcel = place()
    with pytest.raises(OperationRefused, match="It is not escalated"):
        acknowledge(parcel.pk, request=asked())
    assign(parcel.pk, "viewer", request=asked())
    escalate(parcel.pk, request=asked())

    action = acknowledge(parcel.pk, request=asked())

    parcel.refresh_from_db()
    assert parcel.owner == viewer
    assert "owner" not in action.after
    with pytest.raises(OperationRefused, match="It is not escalated"):
        acknowledge(parcel.pk, request=asked())


# A process that stands still is nudged


@pytest.fixture
def emptied(db: None) -> Iterator[None]:
    """Empty the database before the invariants are asked: what stands still is what the engine never writes."""
    yield
    emptying.empty(connection)


def still(**rows: object) -> ProcessInstance:
    """A process that says it goes on, and of which nothing will be done."""
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    InboxEvent.objects.update(wake_at=None)
    StepRun.objects.filter(finished_at=None).update(wake_at=None)
    at = timezone.now() - 5 * MINUTE
    status = {"status": "running", "changed_at": at, **rows}
    ProcessInstance.objects.filter(pk=receipt.process_id).update(**status)
    assert len(stalled_processes()) == 1
    return ProcessInstance.objects.get(pk=receipt.process_id)


def test_s8_4_a_nudge_lets_it_go_on_where_it_stood_however_often_it_is_pressed() -> (
    None
):
    process, press = still(), asked()

    action = nudge(process.pk, request=press)

    assert action.after["woken"]
    assert stalled_processes() == []
    assert nudge(process.pk, request=press) == action
    nudge(process.pk, request=asked())
    run()
    run()
    process.refresh_from_db()
    assert process.status == "waiting"
    assert open_visit(process).node == "verdict"
    assert process.step_runs.filter(node="classify").count() == 1
    assert broken() == []


def test_s8_4_what_only_says_that_it_tries_again_says_how_it_stands(
    emptied: None,
) -> None:
    parcel = place()
    long_ago = timezone.now() - 5 * MINUTE
    ProcessInstance.objects.update(status="retrying", changed_at=long_ago)
    StepRun.objects.filter(finished_at=None).update(wake_at=None)

    nudge(parcel.pk, request=asked())

    parcel.refresh_from_db()
    assert parcel.status == "waiting"


def test_s8_4_what_moves_by_itself_is_not_nudged() -> None:
    waiting = asking()
    with pytest.raises(OperationRefused, match="It waits as designed"):
        nudge(waiting.pk, request=asked())
    receipt = start_process(Inquiry, Inquiry.Input("T-2"))
    process = ProcessInstance.objects.get(pk=receipt.process_id)
    rows = StepRun.objects.filter(instance=process, finished_at=None)
    later = timezone.now() + HOUR
    rows.update(wake_at=later)
    with pytest.raises(OperationRefused, match="It goes on by itself at 20"):
        nudge(process.pk, request=asked())
    rows.update(owner="worker-1")
    with pytest.raises(OperationRefused, match="A worker is at it just now"):
        nudge(process.pk, request=asked())
    rows.update(owner="", wake_at=timezone.now())
    nudge(process.pk, request=asked())  # only rings: nobody had come
    pause(process.pk, True, request=asked())
    with pytest.raises(OperationRefused, match="The process is paused"):
        nudge(process.pk, request=asked())
    unpause(process.pk, True, request=asked())
    run()


def test_s8_4_the_page_says_why_it_stands_still_and_has_the_button(
    site: Client, emptied: None
) -> None:
    process = still()

    page = site.get("/stalled/").content.decode()

    text = " ".join(page.split())
    assert (
        "Classify is “Ready”, but has no time at which a worker would take it." in text
    )
    button = page.partition(f'id="nudge-{process.pk.hex}"')[2].partition("</button>")[0]
    assert "aria-disabled" not in button
    answer = site.post(
        reverse("monitoring:act", args=[process.pk, "nudge"]),
        {"key": uuid4(), "reason": "it stands still", "revision": process.revision},
        headers={
            "HX-Request": "true",
            "HX-Current-URL": "http://testserver/stalled/",
        },
    ).content.decode()
    assert "Nudged: the workers look at it again." in answer
    assert "Nothing stands still." in answer


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("retrying", "It says that it tries again, but nothing"),
        ("running", "It says that it goes on, but only waits in"),
    ],
)
def test_s8_4_what_only_says_so_is_told_and_what_stands_in_no_step_is_not_to_be_nudged(
    status: str, said: str, site: Client, emptied: None
) -> None:
    process = still(status=status)
    visits = StepRun.objects.filter(instance=process)
    button = f'id="nudge-{process.pk.hex}"'
    visits.update(status="waiting", kind="join")
    page = site.get("/stalled/").content.decode()
    assert said in page
    assert button in page

    visits.update(finished_at=timezone.now())
    page = site.get("/stalled/").content.decode()
    assert "stands in no step: cancel it" in page
    assert button not in page


def test_s8_4_of_one_definition_and_by_pages(
    site: Client, emptied: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitoring.queries.stalled.PAGE", 1)
    still()
    start_process(Inquiry, Inquiry.Input("T-2"))
    long_ago = timezone.now() - 9 * MINUTE
    StepRun.objects.filter(finished_at=None).update(wake_at=None)
    InboxEvent.objects.update(wake_at=None)
    ProcessInstance.objects.filter(correlation_key="T-2").update(
        status="running", changed_at=long_ago
    )

    first = site.get("/stalled/").content.decode()

    assert "T-2" in first
    assert 'href="?after=1"' in first
    assert "T-1" in site.get("/stalled/?after=1").content.decode()
    assert (
        "Nothing stands still." in site.get("/stalled/?definition=x").content.decode()
    )


# On the page of waits


@pytest.mark.parametrize("name", ["extend", "escalate", "assign"])
def test_s8_3_buttons_act_from_the_page_of_waits(name: str, site: Client) -> None:
    parcel = place()
    visit = open_visit(parcel)
    page = site.get("/waits/").content.decode()
    button = page.partition(f'id="{name}-{visit.pk}"')[2].partition("</button>")[0]
    assert f'data-revision="{parcel.revision}"' in button
    assert f'id="{name}-dialog"' in page
    route, args = "monitoring:act", [parcel.pk, name]
    if name == "extend":
        route, args = "monitoring:act-on-step", [parcel.pk, visit.pk, name]

    answer = site.post(
        f"{reverse(route, args=args)}?kind=event",
        {
            "key": uuid4(),
            "reason": "because",
            "revision": parcel.revision,
            "minutes": "30",
            "person": "operator",
        },
        headers={
            "HX-Request": "true",
            "HX-Current-URL": "http://testserver/waits/?kind=event",
        },
    )

    assert answer.status_code == 200
    text = answer.content.decode()
    assert 'hx-target="#rows"' in text
    assert OperatorAction.objects.get().action == name
    said = {"escalate": "Escalated", "assign": "<b>operator</b>", "extend": "01:29:"}
    assert said[name] in text.partition('hx-target="#rows"')[2]


def test_s8_3_what_was_escalated_is_acknowledged_there(site: Client) -> None:
    parcel = place()
    escalate(parcel.pk, request=asked())
    visit = open_visit(parcel)

    page = site.get("/waits/").content.decode()

    assert f'id="acknowledge-{visit.pk}"' in page
    assert f'id="escalate-{visit.pk}"' not in page
    whole = site.get(f"/processes/{parcel.pk}/").content.decode()
    assert 'id="acknowledge-button"' in whole
    assert 'id="extend-now"' in whole


def test_s8_3_who_may_not_sees_why(client: Client, viewer: User) -> None:
    visit = open_visit(place())
    client.force_login(viewer)

    page = client.get("/waits/").content.decode()

    for name in ("extend", "escalate", "assign"):
        why = page.partition(f'id="{name}-{visit.pk}-why"')[2].partition("</span>")[0]
        assert "Your account may not do this." in why


# Pausing


def test_s8_5_before_the_click_pause_says_what_happens_to_timers_and_so_it_is(
    site: Client,
) -> None:
    parcel = place()
    page = site.get(f"/processes/{parcel.pk}/").content.decode()
    dialog = page.partition('id="pause-dialog"')[2].partition("</dialog>")[0]
    text = " ".join(dialog.split())
    assert "Its deadlines, the patience of its events and its pauses" in text
    assert "stand still, and go on with what is left of them" in text
    pass_time(50 * MINUTE)

    pause(parcel.pk, True, request=asked())
    pass_time(10 * HOUR)

    assert reminders() == 0
    assert ProcessInstance.objects.get().escalation_level == 0
    unpause(parcel.pk, True, request=asked())
    pass_time(8 * MINUTE)
    assert reminders() == 0
    pass_time(4 * MINUTE)
    assert reminders() == 1
