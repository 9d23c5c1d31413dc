"""The items of bulk operations that ended long ago are removed; the operations, which the audit names, stay."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from orchestrator.engine.invariants import violations
from orchestrator.engine.operations import repeat_bulk
from orchestrator.engine.storage import pruning_items
from orchestrator.exceptions import OperationRefused
from orchestrator.models import BulkItem, BulkOperation, OperatorAction
from tests.apps.process_managers.desk import place
from tests.services.bulk import a_moment, asked, begun, worked_on
from tests.services.client import Client
from tests.services.doing import fresh
from tests.services.pruned import prune

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

LONG_AGO = timedelta(days=40)


@pytest.fixture
def ended(operator: User) -> BulkOperation:
    """Five processes were escalated at once, forty days ago."""
    for number in range(5):
        place(f"P-{number}")
    a_moment()
    operation = worked_on(begun(operator, {"status": "waiting"}, 5, action="escalate"))
    BulkOperation.objects.update(finished_at=timezone.now() - LONG_AGO)
    return operation


def test_old_items_are_removed_and_the_operation_stays(
    ended: BulkOperation, operating: Client, operator: User
) -> None:
    audit = list(OperatorAction.objects.order_by("pk").values())
    assert "5 items of bulk operations removed" in prune("--keep", "30")

    assert not BulkItem.objects.exists()
    assert (fresh(ended).total, ended.done) == (5, 5)
    assert list(OperatorAction.objects.order_by("pk").values()) == audit
    page = operating.read(f"/operations/{ended.pk}/")
    assert "its items were removed" in page
    with pytest.raises(OperationRefused, match="were removed"):
        repeat_bulk(ended.pk, request=asked(operator))


def test_what_ended_lately_or_goes_on_keeps_its_items(ended: BulkOperation) -> None:
    assert "items" not in prune("--keep", "50")
    assert "items" not in prune("--keep", "shipping=30")
    BulkOperation.objects.update(finished_at=None, status="paused")
    prune("--keep", "30")

    assert BulkItem.objects.count() == 5


def test_a_run_that_is_cut_off_is_gone_on_with(
    ended: BulkOperation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning_items, "AT_ONCE", 2)
    assert pruning_items._some(ended.pk) == (2, True)
    assert list(violations()) == []
    limit = timezone.now() - timedelta(days=30)

    assert pruning_items.prune_items(limit, rest=0) == 3
    assert pruning_items.prune_items(limit, rest=0) == 0
    assert not BulkItem.objects.exists()
