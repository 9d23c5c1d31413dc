"""Marks, assignments and links that a release before made by the texts of failures hold for the groups of now."""

import re
from dataclasses import dataclass
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db.models import F

from monitoring.lists.failures.failure_marks import handling_of
from monitoring.lists.failures.failures import failure_groups
from orchestrator.definition import Workflow, start, step
from orchestrator.engine.operations import assign_failures, cancel, mark_handled
from orchestrator.models import (
    DefinitionGrant,
    FailureMark,
    Incident,
    ProcessInstance,
)
from orchestrator.testing import started
from tests.conftest import person
from tests.services.asking import asked
from tests.services.client import Client, Read
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db


def ship(name: str) -> None:
    raise LookupError(f"no address for {name}")


class Parcel(Workflow):
    @dataclass(frozen=True)
    class Input:
        name: str

    flow = (start(step(ship, retries=0)),)


known = knowing(Parcel)


@pytest.fixture
def old(operator: User) -> str:
    """The fingerprint of a failure of the release before, which is assigned and marked as handled."""
    fail("Ann")
    Incident.objects.update(fingerprint=F("earlier"), earlier="")
    row = Incident.objects.get()
    assign_failures(row.fingerprint, "operator", request=asked())
    mark_handled(row.fingerprint, row.pk, None, request=asked())
    assert listed() == []
    return row.fingerprint


def fail(*names: str) -> str:
    """Have parcels of these names fail; return their one cause."""
    for name in names:
        started(Parcel, Parcel.Input(name))
    newest = Incident.objects.order_by("-pk")[: len(names)]
    [cause] = {row.fingerprint for row in newest}
    return str(cause)


def listed() -> list[str]:
    return [group.newest.fingerprint for group in failure_groups().rows]


def test_a_mark_and_an_assignment_hold_for_what_fails_anew(
    old: str, read: Read
) -> None:
    now = fail("Ann", "Bo")

    assert now != old
    assert listed() == [now, old], "one more has failed: both are back"
    found = handling_of([now, old])
    assert [one.mark.owner.username for one in found.values()] == ["operator"] * 2
    assert [one.is_back for one in found.values()] == [True, True]
    for address in ("/failures/", f"/failures/{now}/"):
        page = read(address)
        assert "is back" in page
        assert "Assigned to <b>operator</b>" in page


def test_what_has_never_failed_under_the_old_text_has_no_mark(old: str) -> None:
    now = fail("Bo", "Cy")

    assert listed() == [now]
    assert handling_of([now]) == {}


def test_a_link_leads_to_the_failures_of_now(old: str, read: Read) -> None:
    first = ProcessInstance.objects.get()
    now = fail("Ann", "Bo")
    page = read(f"/failures/{old}/")
    assert page.count('<tr id="incident-') == 1
    assert re.search(rf'<a href="/failures/{now}/"[^>]*>Newer failures', page)
    assert "Newer failures" not in read(f"/failures/{now}/")

    cancel(first.pk, request=asked())
    assert read(f"/failures/{old}/").count('<tr id="incident-') == 2


def test_who_may_see_the_definition_alone_follows_the_link(
    old: str, client: Client
) -> None:
    fail("Ann")
    ProcessInstance.objects.earliest("pk").delete()
    for user, status in ((grants("guard", "parcel"), 200), (grants("ann", "x"), 403)):
        client.force_login(user)
        assert client.get(f"/failures/{old}/").status_code == status


def grants(name: str, definition: str) -> User:
    """Return somebody who may see one definition."""
    group = Group.objects.create(name=name)
    seen = Permission.objects.get(codename="view_processinstance")
    DefinitionGrant.objects.create(group=group, definition=definition, permission=seen)
    user = person(name)
    user.groups.add(group)
    return user


def test_an_action_on_the_group_of_now_begins_with_the_old_mark(
    old: str, operating: Client
) -> None:
    now = fail("Ann", "Bo")
    mark = FailureMark.objects.get(pk=old)
    form = {"key": uuid4().hex, "person": "", "revision": mark.revision}
    address = f"/failures/{now}/assign_failures/"
    answer = operating.post(address, form, headers={"HX-Request": "true"})

    assert answer.status_code == 200
    assert FailureMark.objects.get(pk=now).owner is None
    assert FailureMark.objects.get(pk=now).handled_by == "operator"
    assert FailureMark.objects.get(pk=old).owner is not None
    assert handling_of([now])[now].mark.owner is None


def test_an_old_group_is_handled_anew(old: str) -> None:
    now = fail("Ann")
    row = Incident.objects.get(fingerprint=old)
    mark_handled(old, row.pk, None, request=asked())

    assert listed() == [now]
