"""Tests with the two releases of one application: which of them runs, and what is sent and run then."""

from collections.abc import Iterator
from types import ModuleType

import pytest

from orchestrator import registry, send_event, start_process
from orchestrator.definition import Event
from orchestrator.definition.declarations.handlers import Handler
from orchestrator.models import InboxEvent, Incident, ProcessInstance
from orchestrator.testing import pass_time, registered, run
from tests.apps.releases import before


@pytest.fixture(scope="module", autouse=True)
def releases() -> Iterator[None]:
    """Let each test leave its last release running: the invariants are asked after it."""
    kept = dict(registry.command_handlers)
    with registered():
        yield
    registry.command_handlers.clear()
    registry.command_handlers.update(kept)


def deploy(release: ModuleType) -> ModuleType:
    """Run a release's code from now on."""
    for known in ("Ship", "Dispatch"):
        registry.command_handlers.pop(known, None)
    handler = Handler(lambda command: None, release.Ship, True, 4, 300, "default")
    registry.command_handlers[release.Ship.__name__] = [handler]
    for one in (release.Order, release.Packing):
        registry.definitions[one.name, one.version] = one
    return release


def placed(release: ModuleType = before) -> ProcessInstance:
    """Deploy a release and place an order; it waits to be paid."""
    order = deploy(release).OrderPlaced("O-1")
    receipt = start_process(release.Order, order, id="placed", source="shop")
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def packed(release: ModuleType) -> ProcessInstance:
    """Deploy a release, weigh and pack a parcel; it waits on the table."""
    parcel = deploy(release).Packing.Input("O-1")
    receipt = start_process(release.Packing, parcel, id="parcel", source="shop")
    assert receipt.process_id is not None
    weighed = release.Weighed(7)
    send_event(weighed, id="weighed", source="shop", process_id=receipt.process_id)
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def sent(release: ModuleType, event: Event) -> InboxEvent:
    """Deploy a release and send an event, which no worker delivers yet."""
    deploy(release)
    name = type(event).__name__
    receipt = send_event(event, id=name, source="shop", correlation_key="O-1")
    stored: InboxEvent = InboxEvent.objects.get(pk=receipt.number)
    return stored


def ran(release: ModuleType) -> None:
    """Deploy a release and let its workers run whatever is due within half a minute."""
    deploy(release)
    pass_time(seconds=31)


def told() -> str:
    """Return the message of the one open incident."""
    found: str = Incident.objects.open().get(kind="handler_missing").message
    return found
