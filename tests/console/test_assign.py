"""Assigning a process to a person, who is shown and can be filtered by."""

from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.urls import reverse
from django.utils import timezone
from uuid6 import uuid7

from monitoring.lists.processes.filters import Filters
from orchestrator.engine.operations import assign
from orchestrator.exceptions import OperationRefused, PermissionMissing
from orchestrator.models import Checkpoint, OperatorAction, ProcessInstance
from tests.apps.process_managers.desk import place, tell
from tests.apps.process_managers.messages import ParcelDelivered, ParcelPacked
from tests.services.asking import asked
from tests.services.client import Client, Read
from tests.services.reading import between

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

INSTANCES = reverse("monitoring:instances")


@pytest.fixture
def parcel() -> ProcessInstance:
    return place()


def given_to(parcel: ProcessInstance, name: str, **request: Any) -> OperatorAction:
    """Assign a parcel as the operator, with no reason."""
    action = assign(parcel.pk, name, request=asked(reason="", **request))
    parcel.refresh_from_db()
    return action


def listed(operating: Client, owner: str) -> set[str]:
    """Return the keys of the processes in the list for an owner."""
    shown = operating.get(INSTANCES, {"owner": owner})
    return {row.correlation_key for row in shown.context["listing"].rows}


def test_it_is_assigned_to_oneself_to_somebody_else_and_to_nobody(
    parcel: ProcessInstance, viewer: User
) -> None:
    action = given_to(parcel, "operator")
    operator = action.actor
    assert (parcel.owner, parcel.status, parcel.revision) == (operator, "waiting", 2)
    assert (action.after["owner"], action.reason) == ("operator", "")
    assert Checkpoint.objects.get(revision=2).cause == f"operator:{action.key}"

    given_to(parcel, " viewer ")
    assert parcel.owner == viewer

    action = given_to(parcel, "")
    assert (parcel.owner_id, action.after["owner"]) == (None, "")


def test_only_who_may_assigns_an_active_person_to_a_process_that_goes_on(
    parcel: ProcessInstance, viewer: User
) -> None:
    User.objects.create_user("away", is_active=False)
    for name in ("away", "no such person"):
        with pytest.raises(
            OperationRefused, match=f"no active user has the name '{name}'"
        ):
            given_to(parcel, name)
    with pytest.raises(PermissionMissing):
        given_to(parcel, "viewer", actor=viewer)

    parcel.refresh_from_db()
    assert (parcel.owner, parcel.revision) == (None, 1)
    assert OperatorAction.objects.filter(result="refused").count() == 3

    tell(parcel, ParcelPacked(3))
    tell(parcel, ParcelDelivered("P-1"))
    with pytest.raises(OperationRefused, match="The process has ended"):
        given_to(parcel, "operator")


def test_people_go_by_what_they_sign_in_with(
    parcel: ProcessInstance,
    viewer: User,
    monkeypatch: pytest.MonkeyPatch,
    operating: Client,
    page_of: Read,
) -> None:
    viewer.email = email = "viewer@example.org"
    viewer.save()
    monkeypatch.setattr(User, "USERNAME_FIELD", "email")

    action = given_to(parcel, email)

    assert (parcel.owner, action.after["owner"]) == (viewer, email)
    assert f"<b>{email}</b>" in page_of(parcel)
    assert listed(operating, email) == {"P-1"}


def test_the_owner_is_shown_and_the_dialog_offers_oneself(
    parcel: ProcessInstance, viewer: User, page_of: Read, admin: Client
) -> None:
    assert "Owner <b>nobody</b>" in page_of(parcel)
    given_to(parcel, "viewer")
    shown = page_of(parcel)
    assert "Owner <b>viewer</b>" in shown
    dialog = between(shown, 'id="assign-dialog"', "</dialog>")
    assert 'value="operator"' in dialog
    assert 'name="reason"' not in dialog
    listed = admin.read(reverse("admin:orchestrator_processinstance_changelist"))
    assert "viewer" in between(listed, 'class="field-owner', "</td>")


def test_the_form_assigns_without_a_reason(
    parcel: ProcessInstance, operating: Client, operator: User
) -> None:
    address = reverse("monitoring:act", args=[parcel.pk, "assign"])
    for person, status in (("operator", 302), ("", 409)):  # then the page is stale
        given = {"key": uuid4(), "revision": 1, "person": person}
        assert operating.post(address, given).status_code == status
        parcel.refresh_from_db()
        assert parcel.owner == operator


def test_the_list_is_narrowed_to_an_owner(operating: Client, viewer: User) -> None:
    mine, theirs, _nobodys = place("P-1"), place("P-2"), place("P-3")
    given_to(mine, "operator")
    given_to(theirs, "viewer")

    assert listed(operating, "me") == listed(operating, "operator") == {"P-1"}
    assert listed(operating, "viewer") == {"P-2"}
    assert listed(operating, "nobody") == {"P-3"}
    assert listed(operating, "no such person") == set()
    assert listed(operating, "") == {"P-1", "P-2", "P-3"}
    shown = operating.read(INSTANCES, {"owner": "me", "status": "live"})
    assert 'name="owner" value="me"' in " ".join(shown.split())
    assert '<a class="chip filter" href="?status=live">' in shown
    assert "reader" not in shown.partition("<main")[2]


def test_the_filter_uses_the_index_of_owners(operator: User, viewer: User) -> None:
    definition, now = place().definition, timezone.now()
    row = partial(ProcessInstance, definition=definition, name="shipping", step="Gone")
    times = dict.fromkeys(("started_at", "changed_at", "finished_at"), now)
    rows = [row(id=uuid7(), **times) for _ in range(1_000)]
    ProcessInstance.objects.bulk_create(rows)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {ProcessInstance._meta.db_table}")
    for filters in (Filters(owner="me", reader=operator), Filters(owner="viewer")):
        assert "newest_of_owner" in filters.applied().order_by().explain()
    ProcessInstance.objects.filter(step="Gone").delete()
