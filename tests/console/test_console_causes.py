"""What moved a process is told in words, never as it is stored."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.urls import reverse

from orchestrator.engine.operations.process import explain_stale
from orchestrator.models import CauseKind, Checkpoint, ProcessInstance
from tests.apps.every_construct.desk import inquiry
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.placing import placed
from tests.services.reading import plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk")]

KEY = "00000000-0000-4000-8000-000000049152"
STORED = [
    *(f"{kind}:49152:7" for kind in CauseKind if kind != CauseKind.OPERATOR),
    f"{CauseKind.OPERATOR}:{KEY}",
    "magic:49152:7",
]
"""One of each kind that refers to nothing that is there, and one of a kind that only a later version knows."""


@contextmanager
def moved_by(process: ProcessInstance, stored: str) -> Iterator[Checkpoint]:
    """The last checkpoint, as if this had been its cause for a while."""
    last = process.checkpoints.latest("revision")
    rows = process.checkpoints.filter(pk=last.pk)
    rows.update(cause=stored)
    yield last
    rows.update(cause=last.cause)


@pytest.fixture
def processes() -> list[ProcessInstance]:
    return [placed(), inquiry()]


@cases("stored", *STORED)
def test_a_history_shows_no_stored_cause(
    admin: Client, stored: str, processes: list[ProcessInstance]
) -> None:
    listed = reverse("admin:orchestrator_checkpoint_changelist")
    with moved_by(processes[0], stored) as last, moved_by(processes[1], stored):
        shown = reverse("admin:orchestrator_checkpoint_change", args=[last.pk])
        for address in (*(f"/processes/{one.pk}/" for one in processes), listed, shown):
            assert "49152" not in plain(admin.read(address))
        told = explain_stale(processes[0], 1)

    assert "49152" not in told
    assert f": {stored[:7]}" not in told


def test_the_admin_says_from_where_to_where_a_transition_led(admin: Client) -> None:
    first = placed().checkpoints.get(revision=1)

    shown = admin.read(reverse("admin:orchestrator_checkpoint_change", args=[first.pk]))

    assert "Not started → Awaiting external creation" in shown
