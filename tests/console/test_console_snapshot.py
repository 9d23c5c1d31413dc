"""A page of a process that moves while it is read."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.process.history.history import history_of
from monitoring.process.page import instance_page
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.sql.tables import instances
from orchestrator.models import Cause, CauseKind, ProcessInstance
from orchestrator.snapshot import snapshot
from orchestrator.testing import run
from tests.apps.process_managers.together import together

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def process() -> ProcessInstance:
    order = place_order(Destination.BOTH, "50 MWh")
    run()
    return ProcessInstance.objects.get(pk=order.process_id)


def moved(process: ProcessInstance) -> None:
    """Moves it on as another program would, with a connection of its own."""

    def move() -> None:
        with transaction.atomic():
            locked, now = instances.lock(process.pk)
            assert locked is not None
            cause = Cause.of(CauseKind.SETTLED, locked.revision)
            step = ProcessChange(locked, cause, now)
            step.escalate()
            step.write()

    assert together(move) == [None]


def revision(process: ProcessInstance) -> int:
    return ProcessInstance.objects.get(pk=process.pk).revision


def test_all_that_a_page_shows_belongs_to_its_revision(
    process: ProcessInstance, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would offer the buttons of a newer step under an older revision, which is refused."""
    before = process.revision

    def just_in_between(*given: Any) -> Any:
        moved(process)
        return history_of(*given)

    monkeypatch.setattr("monitoring.process.page.history_of", just_in_between)

    page = instance_page(process.pk, operator)

    shown = [entry.revision for entry in page.history.entries if entry.revision]
    assert revision(process) > before
    assert page.instance.revision == max(shown) == before


def test_a_snapshot_keeps_nobody_from_writing_and_ends_with_its_block(
    process: ProcessInstance,
) -> None:
    with snapshot():
        before = revision(process)
        moved(process)
        within = revision(process)
    after = revision(process)

    assert (within, after) == (before, before + 1)


def test_a_snapshot_may_be_first_on_a_connection(process: ProcessInstance) -> None:
    before = process.revision

    def read() -> int:
        with snapshot():
            moved(process)
            return revision(process)

    assert together(read) == [before + 1]  # the first read is the moment


def test_after_a_snapshot_writes_lock_at_once_again(process: ProcessInstance) -> None:
    usual = getattr(connection, "transaction_mode", None)
    with pytest.raises(InterruptedError), snapshot():
        raise InterruptedError

    assert getattr(connection, "transaction_mode", None) == usual
    with transaction.atomic():
        ProcessInstance.objects.filter(pk=process.pk).update(summary="written")
