"""The messages of a process: who sent what to whom and when, in their order, however many there are."""

import re
from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from examples.order_listing.messages import Destination, ListedOnExternal
from examples.order_listing.orders import place_order
from monitoring.queries.flow.message import CHILDREN, COMMANDS, PARENT, lane_of
from monitoring.queries.flow.page import FlowPage, flow_page
from monitoring.queries.flow.sources import READ, Bound
from orchestrator import send_event
from orchestrator.models import (
    CommandStatus,
    Delivery,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
)
from orchestrator.testing import run
from tests.browser.samples import HARMFUL
from tests.services import emptying
from tests.services.client import Client

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def invented() -> Iterator[None]:
    """Take away what was invented before the invariants are asked of each process."""
    yield
    emptying.empty(connection)


def order(key: str = "") -> ProcessInstance:
    """A process whose commands were carried out, and answered."""
    placed = place_order(Destination.BOTH, "50 MWh", key)
    run()
    return ProcessInstance.objects.get(pk=placed.process_id)


def ways(page: FlowPage) -> list[tuple[str, str, str]]:
    return [(row.message.name, row.sender.said, row.receiver.said) for row in page.rows]


def events(process: ProcessInstance, number: int) -> None:
    """Have events that the process ignored, a second apart, the last one just now."""
    now = timezone.now()
    InboxEvent.objects.bulk_create(
        InboxEvent(
            source="meter",
            event_id=f"{process.pk}-{one}",
            target=process.name,
            type="Read",
            body={},
            body_hash="",
            process=process,
            verdict="ignored",
            received_at=now - timedelta(seconds=number - one),
            handled_at=now - timedelta(seconds=number - one),
        )
        for one in range(number)
    )


def commands(process: ProcessInstance, revision: int, number: int) -> None:
    """Have commands of one transition, all carried out."""
    now = timezone.now()
    IssuedCommand.objects.bulk_create(
        IssuedCommand(
            id=uuid4(),
            instance=process,
            revision=revision,
            type="Ship",
            body={},
            delivery=Delivery.AFTER_COMMIT,
            status=CommandStatus.DONE,
            issued_at=now,
            finished_at=now,
        )
        for _ in range(number)
    )


def test_what_arrived_what_was_issued_and_what_answered_stand_in_their_order() -> None:
    process = order()

    page = flow_page(process.pk)

    times = [row.message.at for row in page.rows]
    assert times == sorted(times)
    kinds = {row.message.kind for row in page.rows}
    assert {"event", "command"} <= kinds
    own = lane_of(process.pk)
    for row in page.rows:
        assert own in (row.message.sender, row.message.receiver)
    issued = IssuedCommand.objects.filter(instance=process)
    assert sum(
        row.message.number for row in page.rows if row.message.kind == "command"
    ) == (issued.exclude(delivery=Delivery.REACTION).count())
    arrived = InboxEvent.objects.filter(process=process).count()
    assert len([row for row in page.rows if row.message.event is not None]) == arrived


def test_each_message_has_its_page_once_however_one_goes_back(invented: None) -> None:
    process = order()
    events(process, 3 * READ)
    all_events = set(
        InboxEvent.objects.filter(process=process).values_list("pk", flat=True)
    )

    seen: list[int] = []
    page = flow_page(process.pk)
    for _ in range(10):
        seen = [
            row.message.event for row in page.rows if row.message.event is not None
        ] + seen
        if not page.older:
            break
        page = flow_page(process.pk, page.older)

    assert len(seen) == len(set(seen))
    assert set(seen) == all_events
    assert not page.older


def test_commands_of_one_transition_are_one_arrow_that_says_how_many(
    invented: None,
) -> None:
    process = order()
    commands(process, process.revision + 1, 7)

    last = flow_page(process.pk).rows[-1].message

    assert (last.name, last.number, last.at_least) == ("Ship", 7, False)


def test_of_very_many_it_says_at_least(invented: None, operating: Client) -> None:
    process = order()
    commands(process, process.revision + 1, 4 * READ)

    page = flow_page(process.pk)
    text = operating.read(f"/processes/{process.pk}/messages/")
    older = flow_page(process.pk, page.older)

    assert page.rows[-1].message.number == READ
    assert page.rows[-1].message.at_least
    assert f"Ship \N{MULTIPLICATION SIGN}{READ}+" in text
    assert "Ship" not in [row.message.name for row in older.rows]
    assert older.rows


def test_a_page_costs_the_same_however_many_messages_there_are(invented: None) -> None:
    process = order()
    events(process, 5)
    with CaptureQueriesContext(connection) as few:
        flow_page(process.pk)
    events_more = order()
    events(events_more, 10 * READ)
    commands(events_more, events_more.revision + 1, 10 * READ)

    with CaptureQueriesContext(connection) as many:
        page = flow_page(events_more.pk)

    assert len(many) == len(few)
    assert sum(row.message.number for row in page.rows) <= 2 * READ + 2


def test_others_of_its_key_stand_beside_it_and_are_never_merged(invented: None) -> None:
    key = "one key"
    first = order(key)
    now = timezone.now()
    twin = ProcessInstance.objects.create(
        definition=first.definition,
        name="another-process",
        correlation_key=first.correlation_key,
        status="running",
        step="",
        started_at=now,
        changed_at=now,
    )
    commands(twin, 1, 1)

    alone, beside = flow_page(first.pk), flow_page(first.pk, together=True)

    assert [process.pk for process in alone.beside] == [twin.pk]
    assert {row.message.process for row in alone.rows} == {first.pk}
    assert {row.message.process for row in beside.rows} == {first.pk, twin.pk}
    ends = {row.message.sender for row in beside.rows if row.message.name == "Ship"}
    assert ends == {lane_of(twin.pk)}


def test_sub_processes_are_started_and_end(invented: None) -> None:
    parent = order()
    now = timezone.now()
    child = ProcessInstance.objects.create(
        definition=parent.definition,
        name="part",
        parent=parent,
        status="completed",
        step="",
        started_at=now,
        changed_at=now,
        finished_at=now + timedelta(seconds=2),
    )

    above, below = flow_page(parent.pk), flow_page(child.pk)

    own = lane_of(parent.pk)
    ends = [
        (row.message.kind, row.message.sender, row.message.receiver)
        for row in above.rows
        if row.message.to == child.pk
    ]
    assert ends == [("start", own, CHILDREN), ("end", CHILDREN, own)]
    here = lane_of(child.pk)
    assert [
        (row.message.kind, row.message.sender, row.message.receiver)
        for row in below.rows
    ] == [("start", PARENT, here), ("end", here, PARENT)]


def test_a_long_silence_is_said(invented: None, operating: Client) -> None:
    process = order()
    InboxEvent.objects.filter(process=process).order_by("pk").update(
        received_at=timezone.now() - timedelta(hours=3)
    )

    text = operating.read(f"/processes/{process.pk}/messages/")

    assert "without a message" in text


def test_many_sources_share_a_lane() -> None:
    process = order()
    for number in range(9):
        send_event(
            ListedOnExternal("x"),
            id=f"late {number}",
            source=f"source {number}",
            process_id=process.pk,
        )
    run()

    page = flow_page(process.pk)

    assert len(page.lanes) <= 8
    assert "other sources" in [lane.label for lane in page.lanes]
    assert {"source 7", "source 8"} <= {row.sender.said for row in page.rows}


@pytest.mark.parametrize("text", HARMFUL)
def test_harmful_texts_are_texts(invented: None, text: str, operating: Client) -> None:
    process = order()
    InboxEvent.objects.filter(process=process).update(
        source=text[:100], type=text[:100]
    )
    IssuedCommand.objects.filter(instance=process).update(type=text[:100], error=text)

    html = operating.read(f"/processes/{process.pk}/messages/")

    assert text not in html or not re.search(r"[<>]", text)


@pytest.mark.parametrize(
    "before",
    ["", "x", "1-2", "-1--1--1", f"{9**40}-{9**40}-{9**40}", "0-0-0", "1-1-\0"],
)
def test_a_place_that_is_none_is_no_mistake(before: str, operating: Client) -> None:
    process = order()

    answer = operating.get(f"/processes/{process.pk}/messages/", {"before": before})

    assert answer.status_code == 200


def test_an_unknown_process_has_no_messages(operating: Client) -> None:
    assert operating.get(f"/processes/{uuid4()}/messages/").status_code == 404


def test_a_place_is_read_as_it_is_written() -> None:
    place = Bound(7, 3, timezone.now())
    assert Bound.read(str(place)) == place


def test_commands_and_their_answers_have_a_lane() -> None:
    page = flow_page(order().pk)
    assert COMMANDS in [lane.name for lane in page.lanes]
    assert all(0 < lane.place < 1_000 for lane in page.lanes)
