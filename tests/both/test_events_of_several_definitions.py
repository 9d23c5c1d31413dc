"""An event by key for several definitions, decided together with others: each of its rows is for its own process."""

from dataclasses import dataclass
from enum import StrEnum

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestrator import send_event, start_process
from orchestrator.definition import Event, ProcessManager, Workflow, during, wait, when
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import cancel
from orchestrator.engine.sql.tables import instances
from orchestrator.models import InboxEvent, ProcessInstance
from tests.services.asking import asked
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db

ODD = ("it's", 'say "no"', "a,b", "{x}", "back\\slash", "NULL", "50 %s", "tab")

INDEXES = ("one_live_process_per_key", "instances_by_key")
"""Both begin with the name and the key, in one order or the other."""


class PartOrdered(Event):
    order: str


class PartArrived(Event):
    order: str
    part: str


class OrderClosed(Event):
    order: str


class Steps(StrEnum):
    NEW = "New"
    OPEN = "Open"
    FULL = "Full"


@dataclass(frozen=True)
class Order:
    order: str


class Accounts(ProcessManager):
    """Counts the parts of an order."""

    correlation = "order"
    Step, Data = Steps, Order
    transitions = (
        during(Steps.NEW, when(PartOrdered).go_to(Steps.OPEN)),
        during(Steps.OPEN, when(PartArrived).go_to(Steps.FULL)),
    )


class Boxes(ProcessManager):
    """Keeps the parts of an order, which may be many."""

    correlation = "order"
    Step, Data = Steps, Order
    transitions = (
        during(Steps.NEW, when(PartOrdered).go_to(Steps.OPEN)),
        during(
            Steps.OPEN,
            when(PartArrived).go_to(Steps.OPEN),
            when(OrderClosed).go_to(Steps.FULL),
        ),
    )


class Frames(Workflow):
    """Waits for the frame of an order."""

    Input, correlation = Order, "order"
    flow = (wait(PartArrived, "frame", part="frame"),)


known = knowing(Accounts, Boxes, Frames)


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what is claimed together written together, also on a busy machine."""
    monkeypatch.setattr("orchestrator.engine.work.worker_slice.HOLD_SECONDS", 30.0)
    monkeypatch.setattr("orchestrator.engine.loops.drain.FEW", 64)


def order(*keys: str) -> None:
    for key in keys:
        send_event(PartOrdered(key), id=f"order {key}")
    drain()


def arrive(*keys: str) -> None:
    """Have a part of each order arrive; all are delivered."""
    for key in keys:
        send_event(PartArrived(key, "wheel"), id=f"part of {key}")
    drain()


def stand(definition: type[ProcessManager]) -> set[tuple[str, str, int]]:
    rows = ProcessInstance.objects.filter(name=definition.name)
    return set(rows.values_list("correlation_key", "step", "revision"))


def test_each_row_moves_the_process_of_its_own_definition() -> None:
    order("1", "2", "3")
    arrive("1", "2", "3")

    assert stand(Accounts) == {(key, "Full", 2) for key in "123"}
    assert stand(Boxes) == {(key, "Open", 2) for key in "123"}


@pytest.mark.parametrize("key", ODD)
def test_a_key_is_the_text_that_it_is(key: str) -> None:
    order(key, "2")
    arrive(key, "2")

    assert stand(Accounts) == {(key, "Full", 2), ("2", "Full", 2)}


def test_a_row_of_an_ended_process_is_ignored_at_once_if_another_definition_takes_it() -> (
    None
):
    """The row that is decided before it is not written yet."""
    order("1", "2", "3")
    ended = start_process(Frames, Order("1")).process_id
    cancel(ended, request=asked())
    arrive("1", "2", "3")

    rows = InboxEvent.objects.filter(event_id="part of 1")
    assert dict(rows.values_list("target", "verdict")) == {
        "accounts": "moved",
        "boxes": "moved",
        "frames": "ignored",
    }
    assert ProcessInstance.objects.get(pk=ended).parked == 0


def test_live_processes_are_found_by_an_index_of_names_and_keys() -> None:
    order(*map(str, range(40)))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
    with CaptureQueriesContext(connection) as queries:
        found, _ = instances.read_live("accounts", ["1", "2", "nobody"])
    [asked_for] = [one for one in queries.captured_queries if "AND NOT" in one["sql"]]
    with connection.cursor() as cursor:
        explain = (
            "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
        )
        cursor.execute(f"{explain} {asked_for['sql'].replace('%', '%%')}")
        plan = str(cursor.fetchall())

    assert sorted(found) == ["1", "2"]
    assert any(name in plan for name in INDEXES), plan
