"""Events of two processes that one worker claims together: what is written only with the next, and what before it."""

from collections.abc import Iterator
from itertools import count
from uuid import UUID

import pytest

from orchestrator import Permanent, send_event
from orchestrator.configuration.conf import conf
from orchestrator.definition import Event
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.work import worker_slice
from orchestrator.models import InboxEvent, ProcessInstance
from orchestrator.testing import failing
from tests.apps.many_together.processes import (
    MEANWHILE,
    Cards,
    CardTurned,
    PointMade,
    RoundOver,
    TableLaid,
    TellTable,
)
from tests.services.cases import cases
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db

cards = knowing(Cards, autouse=False)
numbers = count(1)


@pytest.fixture(scope="module")
def tables(module_db: None, cards: None) -> list[UUID]:
    """Two tables that wait for the first card; their first events have started them."""
    for name in ("first", "second"):
        send_event(TableLaid(name), id=name)
    drain()
    rows = ProcessInstance.objects.filter(name="cards").order_by("correlation_key")
    return list(rows.values_list("pk", flat=True))


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have a decided event wait for the next one, also on a machine that has much else to do."""
    monkeypatch.setattr(worker_slice, "HOLD_SECONDS", 30.0)
    yield
    MEANWHILE.clear()


def send(table: UUID, event: Event) -> int:
    receipt = send_event(event, id=f"event {next(numbers)}", process_id=table)
    return int(receipt.number)


def step_of(table: UUID) -> str:
    return ProcessInstance.objects.get(pk=table).step


def send_and_see(tables: list[UUID], event: Event) -> list[str]:
    """Send an event to both tables. Return the first table's step when the second one's event is decided."""
    seen = list[str]()
    for table in tables:
        send(table, event)
    MEANWHILE["second"] = lambda: seen.append(step_of(tables[0]))
    drain()
    return seen


@cases("event, seen", (CardTurned(), "Up"), (RoundOver(), "Up"), (PointMade(), "Down"))
def test_an_event_with_a_command_inside_the_commit_is_written_before_the_next_is_decided(
    event: Event, seen: str, tables: list[UUID]
) -> None:
    """One without any, or whose commands come after the commit, shares a commit with the next."""
    assert send_and_see(tables, event) == [seen]
    assert [step_of(table) for table in tables] == ["Down", "Down"]


def test_an_event_of_a_process_in_trouble_is_written_before_the_next_is_decided(
    tables: list[UUID],
) -> None:
    with failing(TellTable, Permanent("no listener")):
        send(tables[0], RoundOver())
        drain()
    assert ProcessInstance.objects.get(pk=tables[0]).status == "failed"

    assert send_and_see(tables, CardTurned()) == ["Up"]


def test_an_event_that_has_ended_a_worker_in_each_attempt_is_not_decided_again(
    tables: list[UUID],
) -> None:
    lost, _ = [send(table, CardTurned()) for table in tables]
    InboxEvent.objects.filter(pk=lost).update(attempt=conf().EVENT_ATTEMPTS)
    drain()

    assert [step_of(table) for table in tables] == ["Up", "Down"]
    assert InboxEvent.objects.get(pk=lost).verdict == "failed"
