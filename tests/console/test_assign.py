"""Assigning a process to a person, who is shown and can be filtered by."""

from collections.abc import Callable
from functools import partial
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.urls import reverse
from django.utils import timezone
from uuid6 import uuid7

from monitoring.queries.instances.filters import Filters
from orchestrator.engine.operations import (
    ActionRequest,
    assign,
)
from orchestrator.exceptions import OperationRefused, PermissionMissing
from orchestrator.models import Checkpoint, OperatorAction, ProcessInstance
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.messages import ParcelDelivered
from tests.services.client import Client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

Ask = Callable[[], ActionRequest]
INSTANCES = reverse("monitoring:instances")


@pytest.fixture
def asked(operator: User) -> Ask:
    """Return a function that makes the operator's requests; no reason is given."""
    return lambda: ActionRequest(operator, uuid4())


def page(operating: Client, parcel: ProcessInstance) -> str:
    return operating.read(reverse("monitoring:instance", args=[parcel.pk]))


def listed(operating: Client, owner: str) -> set[str]:
    """Return the keys of the processes in the list for an owner."""
    shown = operating.get(INSTANCES, {"owner": owner})
    return {row.correlation_key for row in shown.context["listing"].rows}


def test_it_is_assigned_to_oneself(asked: Ask, operator: User) -> None:
    parcel = place()
    action = assign(parcel.pk, "operator", request=asked())
    parcel.refresh_from_db()

    assert (parcel.owner, parcel.status, parcel.revision) == (operator, "waiting", 2)
    assert (action.after["owner"], action.reason) == ("operator", "")
    assert Checkpoint.objects.get(revision=2).cause == f"operator:{action.key}"


def test_it_is_assigned_to_somebody_else_and_to_nobody(
    asked: Ask, viewer: User
) -> None:
    parcel = place()
    assign(parcel.pk, " viewer ", request=asked())
    parcel.refresh_from_db()
    assert parcel.owner == viewer

    action = assign(parcel.pk, "", request=asked())
    parcel.refresh_from_db()
    assert parcel.owner_id is None
    assert action.after["owner"] == ""


def test_only_an_active_person_can_be_assigned(asked: Ask) -> None:
    User.objects.create_user("away", is_active=False)
    parcel = place()
    for name in ("away", "no such person"):
        with pytest.raises(OperationRefused, match=f"nobody with the name '{name}'"):
            assign(parcel.pk, name, request=asked())

    parcel.refresh_from_db()
    assert (parcel.owner, parcel.revision) == (None, 1)
    assert OperatorAction.objects.filter(result="refused").count() == 2


def test_people_go_by_what_they_sign_in_with(
    asked: Ask, viewer: User, monkeypatch: pytest.MonkeyPatch, operating: Client
) -> None:
    viewer.email = "viewer@example.org"
    viewer.save()
    monkeypatch.setattr(User, "USERNAME_FIELD", "email")
    parcel = place()
    action = assign(parcel.pk, "viewer@example.org", request=asked())

    parcel.refresh_from_db()
    assert (parcel.owner, action.after["owner"]) == (viewer, "viewer@example.org")
    assert "<b>viewer@example.org</b>" in page(operating, parcel)
    assert listed(operating, "viewer@example.org") == {"P-1"}


def test_who_may_not_is_refused(viewer: User) -> None:
    parcel = place()
    with pytest.raises(PermissionMissing):
        assign(parcel.pk, "viewer", request=ActionRequest(viewer, uuid4()))


def test_an_ended_process_is_not_assigned(asked: Ask) -> None:
    parcel = underway()
    tell(parcel, ParcelDelivered("P-1"))
    with pytest.raises(OperationRefused, match="The process has ended"):
        assign(parcel.pk, "operator", request=asked())


def test_the_owner_is_shown_and_the_dialog_offers_oneself(
    operating: Client, asked: Ask, viewer: User
) -> None:
    parcel = place()
    assert "Owner <b>nobody</b>" in page(operating, parcel)
    assign(parcel.pk, "viewer", request=asked())
    shown = page(operating, parcel)
    assert "Owner <b>viewer</b>" in shown
    dialog = shown[shown.index('id="assign-dialog"') :].partition("</dialog>")[0]
    assert 'value="operator"' in dialog
    assert 'name="reason"' not in dialog


def test_the_form_assigns_without_a_reason(operating: Client, operator: User) -> None:
    parcel = place()
    address = reverse("monitoring:act", args=[parcel.pk, "assign"])
    given = {"key": uuid4(), "revision": 1, "person": "operator"}
    assert operating.post(address, given).status_code == 302
    parcel.refresh_from_db()
    assert parcel.owner == operator

    given = {"key": uuid4(), "revision": 1, "person": ""}
    assert operating.post(address, given).status_code == 409  # the page is stale


def test_the_list_is_narrowed_to_an_owner(
    operating: Client, asked: Ask, viewer: User
) -> None:
    mine, theirs, _nobodys = place("P-1"), place("P-2"), place("P-3")
    assign(mine.pk, "operator", request=asked())
    assign(theirs.pk, "viewer", request=asked())

    assert listed(operating, "me") == listed(operating, "operator") == {"P-1"}
    assert listed(operating, "viewer") == {"P-2"}
    assert listed(operating, "nobody") == {"P-3"}
    assert listed(operating, "no such person") == set()
    assert listed(operating, "") == {"P-1", "P-2", "P-3"}


def test_the_filter_is_shown_and_can_be_removed(operating: Client) -> None:
    shown = operating.read(INSTANCES, {"owner": "me", "status": "live"})

    assert 'name="owner" value="me"' in " ".join(shown.split())
    assert '<a class="chip filter" href="?status=live">' in shown
    assert "reader" not in shown.partition("<main")[2]


def test_the_filter_uses_the_index_of_owners(operator: User, viewer: User) -> None:
    definition, now = place().definition, timezone.now()
    row = partial(ProcessInstance, definition=definition, name="shipping", step="Gone")
    others = ProcessInstance.objects.bulk_create(
        row(id=uuid7(), started_at=now, changed_at=now, finished_at=now)
        for _ in range(1_000)
    )
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {ProcessInstance._meta.db_table}")
    for filters in (Filters(owner="me", reader=operator), Filters(owner="viewer")):
        plan = filters.applied().order_by().explain()
        assert "instances_by_owner" in plan
    ProcessInstance.objects.filter(pk__in=[other.pk for other in others]).delete()


def test_the_admin_shows_owners(admin: Client, asked: Ask) -> None:
    assign(place().pk, "operator", request=asked())
    address = reverse("admin:orchestrator_processinstance_changelist")
    shown = admin.read(address)

    assert 'class="field-owner' in shown
    assert "operator" in shown.partition('class="field-owner')[2][:120]
