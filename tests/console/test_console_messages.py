"""The messages of a process: who sent what to whom and when, in their order, however many there are."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from examples.order_listing.messages import ListedOnExternal
from monitoring.process.messages.message import CHILDREN, COMMANDS, PARENT, lane_of
from monitoring.process.messages.page import FlowPage, flow_page
from monitoring.process.messages.sources import READ, Bound
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
from tests.services.placing import placed
from tests.services.reading import all_rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def invented() -> Iterator[None]:
    """Take away what was invented before the invariants are asked of each process."""
    yield
    connection.check_constraints()  # no row waits for its check, which would keep its table from being emptied
    emptying.empty(connection)


def invent(like: ProcessInstance, **fields: Any) -> ProcessInstance:
    """Have a process that the engine has not started."""
    now = timezone.now()
    usual = {"definition": like.definition, "step": "", "started_at": now}
    return ProcessInstance.objects.create(**usual, changed_at=now, **fields)


def events(process: ProcessInstance, number: int) -> None:
    """Have events that the process ignored, a second apart, the last one just now."""
    now = timezone.now()
    moments = [now - timedelta(seconds=number - one) for one in range(number)]
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
            received_at=at,
            handled_at=at,
        )
        for one, at in enumerate(moments)
    )


def commands(process: ProcessInstance, number: int) -> None:
    """Have commands of its next transition, all carried out."""
    now = timezone.now()
    IssuedCommand.objects.bulk_create(
        IssuedCommand(
            id=uuid4(),
            instance=process,
            revision=process.revision + 1,
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
    process = placed()

    page = flow_page(process.pk)

    told = [row.message for row in page.rows]
    assert [one.at for one in told] == sorted(one.at for one in told)
    assert {"event", "command"} <= {one.kind for one in told}
    own = lane_of(process.pk)
    assert all(own in (one.sender, one.receiver) for one in told)
    issued = IssuedCommand.objects.filter(instance=process)
    number = issued.exclude(delivery=Delivery.REACTION).count()
    assert sum(one.number for one in told if one.kind == "command") == number
    arrived = InboxEvent.objects.filter(process=process).count()
    assert sum(one.event is not None for one in told) == arrived
    assert COMMANDS in [lane.name for lane in page.lanes]
    assert all(0 < lane.place < 1_000 for lane in page.lanes)


def test_each_message_has_its_page_once_however_one_goes_back(invented: None) -> None:
    process = placed()
    events(process, 3 * READ)
    rows = InboxEvent.objects.filter(process=process)

    told = all_rows(lambda older: flow_page(process.pk, older))

    seen = [row.message.event for row in told if row.message.event is not None]
    assert sorted(seen) == sorted(rows.values_list("pk", flat=True))


def test_commands_of_one_transition_are_one_arrow_that_says_how_many_or_at_least(
    invented: None, operating: Client
) -> None:
    process, other = placed(), placed()
    commands(process, 7)
    commands(other, 4 * READ)

    page = flow_page(other.pk)
    few, many = flow_page(process.pk).rows[-1].message, page.rows[-1].message
    text = operating.read(f"/processes/{other.pk}/messages/")
    older = flow_page(other.pk, page.older)

    assert (few.name, few.number, few.at_least) == ("Ship", 7, False)
    assert (many.name, many.number, many.at_least) == ("Ship", READ, True)
    assert f"Ship \N{MULTIPLICATION SIGN}{READ}+" in text
    assert "Ship" not in [row.message.name for row in older.rows]
    assert older.rows


def test_a_page_costs_the_same_however_many_messages_there_are(invented: None) -> None:
    process, other = placed(), placed()
    events(process, 5)
    events(other, 10 * READ)
    commands(other, 10 * READ)
    with CaptureQueriesContext(connection) as few:
        flow_page(process.pk)
    with CaptureQueriesContext(connection) as many:
        page = flow_page(other.pk)

    assert len(many) == len(few)
    assert sum(row.message.number for row in page.rows) <= 2 * READ + 2


def test_others_of_its_key_stand_beside_it_and_are_never_merged(invented: None) -> None:
    first = placed(key="one key")
    twin = invent(first, name="another", status="running", correlation_key="one key")
    commands(twin, 1)

    alone, beside = flow_page(first.pk), flow_page(first.pk, together=True)

    assert [process.pk for process in alone.beside] == [twin.pk]
    assert {row.message.process for row in alone.rows} == {first.pk}
    assert {row.message.process for row in beside.rows} == {first.pk, twin.pk}
    ends = {row.message.sender for row in beside.rows if row.message.name == "Ship"}
    assert ends == {lane_of(twin.pk)}


def test_sub_processes_are_started_and_end(invented: None) -> None:
    parent = placed()
    later = timezone.now() + timedelta(seconds=2)
    child = invent(
        parent, name="part", parent=parent, status="completed", finished_at=later
    )

    def ways(page: FlowPage) -> list[tuple[str, object, object]]:
        told = [row.message for row in page.rows if row.message.to in (None, child.pk)]
        told = [one for one in told if one.kind in ("start", "end")]
        return [(one.kind, one.sender, one.receiver) for one in told]

    own, here = lane_of(parent.pk), lane_of(child.pk)
    above, below = flow_page(parent.pk), flow_page(child.pk)
    assert ways(above) == [("start", own, CHILDREN), ("end", CHILDREN, own)]
    assert ways(below) == [("start", PARENT, here), ("end", here, PARENT)]
    assert len(below.rows) == 2


def test_a_long_silence_is_said(invented: None, operating: Client) -> None:
    process = placed()
    long_ago = timezone.now() - timedelta(hours=3)
    InboxEvent.objects.filter(process=process).update(received_at=long_ago)

    assert "without a message" in operating.read(f"/processes/{process.pk}/messages/")


def test_many_sources_share_a_lane() -> None:
    process = placed()
    for number in range(9):
        to: dict[str, Any] = {"source": f"source {number}", "process_id": process.pk}
        send_event(ListedOnExternal("x"), id=f"late {number}", **to)
    run()

    page = flow_page(process.pk)

    assert len(page.lanes) <= 8
    assert "other sources" in [lane.label for lane in page.lanes]
    assert {"source 7", "source 8"} <= {row.sender.said for row in page.rows}


def test_harmful_texts_are_texts(invented: None, operating: Client) -> None:
    process = placed()
    arrived = InboxEvent.objects.filter(process=process)
    issued = IssuedCommand.objects.filter(instance=process)
    for text in HARMFUL:
        arrived.update(source=text[:100], type=text[:100])
        issued.update(type=text[:100], error=text)
        html = operating.read(f"/processes/{process.pk}/messages/")
        assert text not in html or not re.search(r"[<>]", text)


def test_a_place_that_is_none_is_no_mistake(operating: Client) -> None:
    address = f"/processes/{placed().pk}/messages/"
    large = f"{9**40}-{9**40}-{9**40}"
    place = Bound(7, 3, timezone.now())
    assert Bound.parse(str(place)) == place
    for before in ("", "x", "1-2", "-1--1--1", large, "0-0-0", "1-1-\0"):
        operating.read(address, {"before": before})
    operating.read(f"/processes/{uuid4()}/messages/", status=404)
