"""S8, what can be done about what waits: a deadline put off, an escalation acknowledged, a stalled process nudged."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from monitoring.lists.processes.stalled_processes import stalled_processes
from orchestrator import start_process
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import (
    acknowledge,
    assign,
    escalate,
    extend,
    nudge,
    pause,
    unpause,
)
from orchestrator.exceptions import PermissionMissing, StaleRevision
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import pass_time, run, started
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Inquiry
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.messages import ParcelDelivered, ParcelPacked
from tests.services import emptying
from tests.services.asking import asked
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.doing import refused
from tests.services.hired import hire
from tests.services.invariants import broken
from tests.services.operated import at_once, press

__all__ = ["helpdesk"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk", "parcels")]

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def open_visit(process: ProcessInstance) -> StepRun:
    rows = process.step_runs.filter(finished_at=None).exclude(kind="join")
    return rows.get()


def due_of(visit: StepRun) -> Any:
    """Return when an open visit is due as things stand now; it has a time."""
    due = StepRun.objects.get(pk=visit.pk).wake_at
    assert due is not None
    return due


def reminded_after(*waits: timedelta) -> list[int]:
    """Let time pass; return how often the packer was reminded after each."""
    found = []
    for time in waits:
        pass_time(time)
        found.append(IssuedCommand.objects.filter(type="RemindPacker").count())
    return found


def level() -> int:
    """Return how far the only process is escalated."""
    return ProcessInstance.objects.get().escalation_level


def part(page: str, id: str, end: str) -> str:
    """Return what stands in a page from the element with an id to the end of one."""
    return page.partition(f'id="{id}"')[2].partition(end)[0]


def act(
    client: Client, page: str, name: str, *args: Any, step: str = "", **given: Any
) -> str:
    """Press the button of an action on a page, as a browser does; return the answer."""
    answer = client.post(
        f"{reverse(f'monitoring:act{step}', args=[*args, name])}?{urlsplit(page).query}",
        {"key": uuid4(), "reason": "because", **given},
        headers={"HX-Request": "true", "HX-Current-URL": f"http://testserver{page}"},
    )
    assert answer.status_code == 200
    return answer.content.decode()


# A deadline is put off


def test_s8_3_a_deadline_and_those_after_it_pass_as_much_later() -> None:
    parcel = place()
    visit = open_visit(parcel)
    before = due_of(visit)

    action = extend(parcel.pk, visit.pk, 90, request=asked())

    assert due_of(visit) == before + 90 * MINUTE
    times = {"from": before.isoformat(), "until": due_of(visit).isoformat()}
    assert action.after["extended"]["Packing"] == times
    assert Checkpoint.objects.get(revision=2).cause == f"operator:{action.key}"
    assert reminded_after(2 * HOUR, 31 * MINUTE) == [0, 1]
    pass_time(118 * MINUTE)  # its third hour would have been over long ago
    assert level() == 0
    pass_time(3 * MINUTE)
    assert level() == 1


def test_s8_3_extended_twice_is_the_sum_and_pressed_twice_is_once() -> None:
    parcel, press = place(), asked()
    visit = open_visit(parcel)
    before = due_of(visit)
    for _ in range(2):
        extend(parcel.pk, visit.pk, 30, request=press)
    extend(parcel.pk, visit.pk, 15, request=asked())

    assert due_of(visit) == before + 45 * MINUTE
    assert open_visit(parcel).extended == 45 * MINUTE
    assert ProcessInstance.objects.get().revision == 3

    # One that is over and not carried out counts from now.
    late = timezone.now() - 10 * MINUTE
    StepRun.objects.filter(pk=visit.pk).update(wake_at=late)
    extend(parcel.pk, visit.pk, 20, request=asked())
    assert abs(due_of(visit) - timezone.now() - 20 * MINUTE) < 20 * SECOND


def test_s8_3_of_a_paused_process_what_is_left_is_more() -> None:
    parcel = place()
    pause(parcel.pk, True, request=asked())
    left = open_visit(parcel).remaining

    extend(parcel.pk, open_visit(parcel).pk, 60, request=asked())

    assert left is not None
    assert open_visit(parcel).remaining == left + HOUR
    pass_time(10 * HOUR)
    unpause(parcel.pk, True, request=asked())
    assert reminded_after(119 * MINUTE, 2 * MINUTE) == [0, 1]


def test_s8_3_the_deadline_of_a_question_is_put_off() -> None:
    process = started(Inquiry, Inquiry.Input("T-1"))
    run = open_visit(process.instance)
    assert run.kind == "ask"

    extend(process.id, run.pk, 24 * 60, request=asked())

    pass_time(days=2, hours=1)
    assert process.open_steps == ["verdict"]
    pass_time(days=1)
    assert "verdict" not in process.open_steps


def test_s8_3_what_cannot_be_extended_is_refused(viewer: User) -> None:
    parcel = place()
    left = open_visit(parcel).pk
    for minutes in (0, -5, 525_601):
        refused("extend it by 1 to 525,600 minutes", extend, parcel, left, minutes)
    refused("", extend, parcel, left, 5, error=PermissionMissing, actor=viewer)
    rows = StepRun.objects.filter(pk=left)
    rows.update(owner="worker-1", attempt=1)
    refused("the deadline of Packing has passed", extend, parcel, left, 5)
    rows.update(owner="", attempt=0)

    tell(parcel, ParcelPacked(3))
    for why, seen in (
        ("has changed since the page was loaded", {"expected_revision": 1}),
        ("Packing is over meanwhile", {}),
    ):
        refused(why, extend, parcel, left, 5, error=StaleRevision, **seen)
    assert OperatorAction.objects.filter(result="refused").count() == 7


def test_s8_3_what_has_no_deadline_ahead_is_not_extended() -> None:
    parcel = underway()
    pass_time(73 * HOUR)
    missing = open_visit(parcel).pk
    refused("Missing has no deadline ahead", extend, parcel, missing, 5)

    tell(parcel, ParcelDelivered("P-1"))
    last = parcel.step_runs.latest("pk").pk
    refused("The process has ended", extend, parcel, last, 5)


@pytest.mark.django_db(transaction=True)
def test_s8_3_an_extension_and_the_deadline_do_not_get_in_each_others_way() -> None:
    for number in range(4):
        parcel = place(f"P-{number}")
        visit = open_visit(parcel)
        StepRun.objects.filter(pk=visit.pk).update(wake_at=timezone.now())

        at_once(drain, press(extend, parcel, visit.pk, 60))
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
    assert level() == 1


def test_s8_3_an_owner_stays_and_nothing_else_is_acknowledged(viewer: User) -> None:
    parcel = place()
    refused("It is not escalated", acknowledge, parcel)
    assign(parcel.pk, "viewer", request=asked())
    escalate(parcel.pk, request=asked())

    action = acknowledge(parcel.pk, request=asked())

    assert ProcessInstance.objects.get().owner == viewer
    assert "owner" not in action.after
    refused("It is not escalated", acknowledge, parcel)


# A process that stands still is nudged


@pytest.fixture
def emptied(db: None) -> Iterator[None]:
    """Empty the database before the invariants are asked: what stands still is what the engine never writes."""
    yield
    emptying.empty(connection)


def still(key: str = "T-1", minutes: int = 5, status: str = "running") -> Any:
    """A process that says it goes on, and of which nothing will be done."""
    receipt = start_process(Inquiry, Inquiry.Input(key))
    InboxEvent.objects.update(wake_at=None)
    StepRun.objects.filter(finished_at=None).update(wake_at=None)
    rows = ProcessInstance.objects.filter(pk=receipt.process_id)
    rows.update(status=status, changed_at=timezone.now() - minutes * MINUTE)
    assert receipt.process_id in {one.pk for one in stalled_processes()}
    return rows.get()


def test_s8_4_a_nudge_lets_it_go_on_where_it_stood_however_often_pressed() -> None:
    process, press = still(), asked()

    action = nudge(process.pk, request=press)

    assert action.after["woken"]
    assert stalled_processes() == []
    assert nudge(process.pk, request=press) == action
    nudge(process.pk, request=asked())
    run()
    process.refresh_from_db()
    assert (process.status, open_visit(process).node) == ("waiting", "verdict")
    assert process.step_runs.filter(node="classify").count() == 1
    assert broken() == []


def test_s8_4_what_only_says_it_tries_again_says_how_it_stands(emptied: None) -> None:
    parcel = place()
    long_ago = timezone.now() - 5 * MINUTE
    ProcessInstance.objects.update(status="retrying", changed_at=long_ago)
    StepRun.objects.filter(finished_at=None).update(wake_at=None)

    nudge(parcel.pk, request=asked())

    assert ProcessInstance.objects.get().status == "waiting"


def test_s8_4_what_moves_by_itself_is_not_nudged() -> None:
    waiting = started(Inquiry, Inquiry.Input("T-1")).instance
    refused("It waits as designed", nudge, waiting)
    receipt = start_process(Inquiry, Inquiry.Input("T-2"))
    process = ProcessInstance.objects.get(pk=receipt.process_id)
    rows = StepRun.objects.filter(instance=process, finished_at=None)
    rows.update(wake_at=timezone.now() + HOUR)
    refused("It goes on by itself at 20", nudge, process)
    rows.update(owner="worker-1")
    refused("A worker is at it just now", nudge, process)
    rows.update(owner="", wake_at=timezone.now())
    nudge(process.pk, request=asked())  # only rings: nobody had come
    pause(process.pk, True, request=asked())
    refused("The process is paused", nudge, process)
    unpause(process.pk, True, request=asked())
    run()


def test_s8_4_the_page_says_why_it_stands_still_and_has_the_button(
    operating: Client, emptied: None
) -> None:
    process = still()
    hire(seconds_ago=-3600)  # heard of in an hour: else the page tells of due work

    page = operating.read("/stalled/")

    said = "Classify is “Ready”, but has no time at which a worker would take it."
    assert said in " ".join(page.split())
    assert "aria-disabled" not in part(page, f"nudge-{process.pk.hex}", "</button>")
    seen = {"revision": process.revision}
    answer = act(operating, "/stalled/", "nudge", process.pk, **seen)
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
    status: str, said: str, read: Read, emptied: None
) -> None:
    process = still(status=status)
    visits = StepRun.objects.filter(instance=process)
    button = f'id="nudge-{process.pk.hex}"'
    visits.update(status="waiting", kind="join")
    page = read("/stalled/")
    assert said in page
    assert button in page

    visits.update(finished_at=timezone.now())
    page = read("/stalled/")
    assert "stands in no step: cancel it" in page
    assert button not in page


def test_s8_4_of_one_definition_and_by_pages(
    read: Read, emptied: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    still()
    still("T-2", minutes=9)
    monkeypatch.setattr("monitoring.lists.processes.stalled_processes.PAGE", 1)

    first = read("/stalled/")

    assert "T-2" in first
    assert 'href="?after=1"' in first
    assert "T-1" in read("/stalled/?after=1")
    assert "Nothing stands still." in read("/stalled/?definition=x")


# On the page of waits


@cases(
    "name, said",
    ("extend", "1 h 29 min"),
    ("escalate", "Escalated"),
    ("assign", "<b>operator</b>"),
)
def test_s8_3_buttons_act_from_waits(name: str, said: str, operating: Client) -> None:
    parcel = place()
    visit = open_visit(parcel)
    page = operating.read("/waits/")
    button = part(page, f"{name}-{visit.pk}", "</button>")
    assert f'data-revision="{parcel.revision}"' in button
    assert f'id="{name}-dialog"' in page
    on, step = ([visit.pk], "-on-step") if name == "extend" else ([], "")
    given = {"revision": parcel.revision, "minutes": "30", "person": "operator"}

    waits = "/waits/?kind=event"
    answer = act(operating, waits, name, parcel.pk, *on, step=step, **given)

    assert said in answer.partition('hx-target="#rows"')[2]
    assert OperatorAction.objects.get().action == name


def test_s8_3_what_was_escalated_is_acknowledged_there(read: Read) -> None:
    parcel = place()
    escalate(parcel.pk, request=asked())
    visit = open_visit(parcel)

    page, whole = read("/waits/"), read(f"/processes/{parcel.pk}/")

    assert f'id="acknowledge-{visit.pk}"' in page
    assert f'id="escalate-{visit.pk}"' not in page
    assert 'id="acknowledge-button"' in whole
    assert 'id="extend-now"' in whole


def test_s8_3_who_may_not_sees_why(viewing: Client) -> None:
    visit = open_visit(place())

    page = viewing.read("/waits/")

    for name in ("extend", "escalate", "assign"):
        why = part(page, f"{name}-{visit.pk}-why", "</span>")
        assert "Your account may not do this." in why


# Pausing


def test_s8_5_pause_says_first_what_timers_do_and_so_it_is(page_of: Read) -> None:
    parcel = place()
    text = " ".join(part(page_of(parcel), "pause-dialog", "</dialog>").split())
    assert "Its deadlines, the patience of its events and its pauses" in text
    assert "stand still, and go on with what is left of them" in text
    pass_time(50 * MINUTE)

    pause(parcel.pk, True, request=asked())

    assert reminded_after(10 * HOUR) == [0]
    assert level() == 0
    unpause(parcel.pk, True, request=asked())
    assert reminded_after(8 * MINUTE, 4 * MINUTE) == [0, 1]
