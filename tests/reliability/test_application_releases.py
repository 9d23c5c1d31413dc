"""Two releases of an application side by side, as in a rolling deploy: nothing fails for good, and order is kept."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import cycle
from types import ModuleType

import pytest

from orchestrator import send_event, start_process
from orchestrator.definition import Event
from orchestrator.engine.sql.batch import database_now
from orchestrator.models import (
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    Verdict,
    Worker,
)
from tests.apps.releases import before, processes, rolling
from tests.services.crews import QUICK, told
from tests.services.database import NEEDS_SERVER
from tests.services.patience import wait_for
from tests.services.program import Program, management_command
from tests.services.releases import deploy, releases
from tests.services.sizes import size
from tests.services.valkey import ValkeyServer

__all__ = ["releases"]
pytestmark = NEEDS_SERVER  # SQLite is for one host, which is not deployed in turns

ORDERS = size(4, full=60)
NOTES = 6
"""Of each order."""


@pytest.fixture
def workers(
    monkeypatch: pytest.MonkeyPatch, transactional_db: None, valkey: ValkeyServer
) -> Iterator[dict[ModuleType, Program]]:
    """Return the workers of both releases: those of the first one work."""
    patience = {"PATIENCE_SECONDS": 3600}
    told(monkeypatch, {**QUICK, **patience, "APPS": "tests.apps.releases"})
    hired = {}
    for release in (before, rolling):
        monkeypatch.setenv(processes.RELEASE, release.__name__.rpartition(".")[2])
        hired[release] = management_command("work", "--processes", "1")
        if release is before:
            hired[release].start()
    wait_for(Worker.objects.exists, 60)  # it has checked its definitions
    yield hired
    for program in hired.values():
        program.stop()


def messages(release: ModuleType, order: str) -> list[Event]:
    """Return the events of an order in a release."""
    if release is before:
        return [
            before.OrderPlaced(order),
            before.OrderPaid(order, 5),
            *(before.NoteAdded(order, n) for n in range(NOTES)),
            before.OrderPacked(order),
        ]
    return [
        rolling.OrderPlaced(order),
        rolling.OrderPaid(order, 5, "USD"),
        *(rolling.NoteAdded(order, n, "letter") for n in range(NOTES)),
        rolling.OrderBoxed(order, 2),
    ]


def send_all(orders: list[str]) -> None:
    """Send the events of the orders: each event of an order by the release that did not send the one before."""
    for number in range(NOTES + 3):
        sides = cycle((before, rolling) if number % 2 else (rolling, before))
        for order, side in zip(orders, sides, strict=False):
            deploy(side)
            event = messages(side, order)[number]
            send_event(event, id=f"{order} {number}", source="shop")


def start_parcels(orders: list[str]) -> None:
    for order, side in zip(orders, cycle((before, rolling)), strict=False):
        deploy(side)
        parcel = side.Packing.Input(order)
        made = start_process(side.Packing, parcel, id=f"parcel {order}", source="shop")
        deploy(rolling if side is before else before)
        weighed = (rolling if side is before else before).Weighed(7)
        id = f"weighed {order}"
        send_event(weighed, id=id, source="shop", process_id=made.process_id)


def make_due() -> None:
    """Let what is set aside be looked at now instead of in half a minute."""
    now, later = database_now(), {"owner": "", "wake_at__isnull": False}
    for model in (InboxEvent, IssuedCommand, StepRun):
        rows = model.objects.filter(**later).exclude(error="")
        rows.filter(wake_at__gt=now).update(wake_at=now - timedelta(seconds=1))


def where() -> object:
    return [*ProcessInstance.objects.values_list("name", "step", "status")], [
        *Incident.objects.open().values_list("message", flat=True)
    ]


@pytest.mark.full_size("60 orders", seconds=600)
def test_two_releases_side_by_side_bring_all_orders_to_their_ends(
    workers: dict[ModuleType, Program],
) -> None:
    orders = [f"O-{number}" for number in range(ORDERS)]
    start_parcels(orders)
    send_all(orders)
    aside = Incident.objects.filter(kind=Incident.Kind.HANDLER_MISSING)
    wait_for(aside.exists, 60, where)
    workers[rolling].start()
    undecided = InboxEvent.objects.filter(handled_at=None, error="")
    wait_for(lambda: not undecided.exists(), 120, where)
    workers[before].stop()
    deploy(rolling)
    completed = ProcessInstance.objects.filter(status=Status.COMPLETED)

    def are_all_completed() -> bool:
        make_due()
        return completed.count() == 2 * ORDERS

    wait_for(are_all_completed, 120, where)
    due = IssuedCommand.objects.filter(wake_at__isnull=False)

    def are_all_carried_out() -> bool:
        make_due()
        return not due.exists()

    wait_for(are_all_carried_out, 60, where)
    assert not InboxEvent.objects.filter(verdict=Verdict.FAILED).exists()
    assert [*Incident.objects.open().values_list("kind", "message")] == []
    notes = ProcessInstance.objects.filter(name="order").values_list("data", flat=True)
    assert [one["notes"] for one in notes] == [[*range(NOTES)]] * ORDERS
