"""What moved a process is told in words, never as it is stored."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator import start_process
from orchestrator.engine.drain import drain
from orchestrator.engine.operations.stale import what_changed
from orchestrator.models import CauseKind, Checkpoint, ProcessInstance
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Inquiry

__all__ = ["helpdesk"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk")]

KEY = "00000000-0000-4000-8000-000000049152"
STORED = [
    *(f"{kind}:49152:7" for kind in CauseKind if kind != CauseKind.OPERATOR),
    f"{CauseKind.OPERATOR}:{KEY}",
    "magic:49152:7",
]
"""One of each kind that refers to nothing that is there, and one of a kind that only a later version knows."""


def order() -> ProcessInstance:
    placed = place_order(Destination.BOTH, "50 MWh")
    drain()
    return ProcessInstance.objects.get(pk=placed.process_id)


def inquiry() -> ProcessInstance:
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    drain()
    return ProcessInstance.objects.get(pk=receipt.process_id)


@contextmanager
def moved_by(process: ProcessInstance, stored: str) -> Iterator[Checkpoint]:
    """The last checkpoint, as if this had been its cause for a while."""
    last = process.checkpoints.latest("revision")
    rows = process.checkpoints.filter(pk=last.pk)
    rows.update(cause=stored)
    yield last
    rows.update(cause=last.cause)


@pytest.mark.parametrize("stored", STORED)
@pytest.mark.parametrize("begin", [order, inquiry])
def test_a_history_shows_no_stored_cause(
    client: Client, administrator: User, stored: str, begin: type
) -> None:
    process = begin()
    client.force_login(administrator)
    listed = reverse("admin:orchestrator_checkpoint_changelist")

    with moved_by(process, stored) as last:
        shown = reverse("admin:orchestrator_checkpoint_change", args=[last.pk])
        for address in (f"/processes/{process.pk}/", listed, shown):
            answer = client.get(address)
            assert answer.status_code == 200
            assert "49152" not in _read(answer.content)


@pytest.mark.parametrize("stored", STORED)
def test_who_is_too_late_is_told_in_words_what_moved_it(stored: str) -> None:
    process = order()

    with moved_by(process, stored):
        told = what_changed(process, 1)

    assert "49152" not in told
    assert f": {stored[:7]}" not in told


def test_the_admin_says_from_where_to_where_a_transition_led(
    client: Client, administrator: User
) -> None:
    first = order().checkpoints.get(revision=1)
    client.force_login(administrator)

    shown = client.get(
        reverse("admin:orchestrator_checkpoint_change", args=[first.pk])
    ).content.decode()

    assert "Not started → Awaiting external creation" in shown


def _read(content: bytes) -> str:
    """What stands on a page, without the names in its tags."""
    text = content.decode()
    return "".join(part.partition(">")[2] for part in text.split("<"))
