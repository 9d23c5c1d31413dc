"""S12.1, permissions by definition: what a group may do with the processes of one definition, and with no others."""

import re
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import AnonymousUser, Group, User
from django.core.management import call_command
from django.db import connection
from django.http import HttpRequest
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from monitoring.admin.grants import grantable_permissions
from monitoring.live.sharing import SharedKey, SharedReader, shared_key
from orchestrator.engine.operations import (
    OPERATIONS,
    EventToSend,
    deliver,
    escalate,
    pause_bulk,
    redeliver,
    send,
)
from orchestrator.exceptions import PermissionMissing
from orchestrator.grants import GrantsBackend, grants_of
from orchestrator.models import (
    BulkOperation,
    DefinitionGrant,
    InboxEvent,
    Incident,
    OperatorAction,
    ProcessInstance,
)
from tests.apps.process_managers.desk import early, place
from tests.apps.process_managers.messages import ParcelScanned
from tests.conftest import VIEWER_MAY, of, permissions, person
from tests.console.test_api import Program
from tests.services.bulk import asked, begun, worked_on
from tests.services.cases import words
from tests.services.client import Client
from tests.services.forms_of_actions import failed_order
from tests.services.hired import hire
from tests.services.pressing import form
from tests.services.reading import between

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

ORDERS, PARCELS = "order-listing", "shipping"
NOBODYS = "/operations/begin/?action=escalate&owner=nobody"
"""Where an action on the processes of all definitions is begun."""
NOT_PARCELS = f"Your account may not do this for {PARCELS}."


def grant(user: User, definition: str, *operations: str) -> User:
    """Put somebody into a group that may do this for one definition; return them as another request reads them."""
    group, _new = Group.objects.get_or_create(name=f"{definition} people")
    for name in operations:
        given: dict[str, Any] = {"group": group, "definition": definition}
        given["permission_id"] = permissions()[OPERATIONS[name].codename]
        DefinitionGrant.objects.get_or_create(**given)
    user.groups.add(group)
    return anew(user)


def anew(user: User) -> User:
    return User.objects.get(pk=user.pk)


@pytest.fixture
def ann(viewer: User) -> User:
    """Return somebody who may look at everything, and act on orders alone."""
    viewer.user_permissions.add(permissions()["use_accesstoken"])
    names = "escalate retry start_bulk mark_handled redeliver send deliver"
    return grant(viewer, ORDERS, *words(names))


@pytest.fixture
def signed_in(ann: User) -> Client:
    return of(ann)


@pytest.fixture(scope="module", autouse=True)
def world(module_db: None, parcels: None) -> None:
    """An order that has failed, and a parcel."""
    failed_order()
    place("P-1")


def order() -> ProcessInstance:
    return ProcessInstance.objects.get(name=ORDERS)


def parcel() -> ProcessInstance:
    return ProcessInstance.objects.get(name=PARCELS)


def failure() -> Any:
    return Incident.objects.open().latest("pk")


def press(client: Client, process: ProcessInstance) -> Any:
    said = {"key": str(uuid4()), "reason": "because"}
    return client.post(f"/processes/{process.pk}/escalate/", said)


def button(page: str) -> tuple[bool, str]:
    """Whether the button that escalates can be pressed, and why not."""
    before, found, rest = page.partition('id="escalate-button"')
    assert found
    tag = before.rpartition("<")[2] + rest.partition(">")[0]
    why = between(page, 'id="escalate-button-why" role="tooltip">', "<")
    return 'aria-disabled="true"' not in tag, why


def became(operation: BulkOperation) -> dict[Any, str]:
    """What became of each process of an operation."""
    return dict(operation.items.values_list("process_id", "verdict"))


# One process


def test_s12_1_a_granted_definition_is_acted_on_by_page_and_by_rest(
    signed_in: Client, ann: User
) -> None:
    place = f"/processes/{order().pk}/"
    assert button(signed_in.read(place)) == (True, "")

    assert press(signed_in, order()).status_code == 302
    assert Program(ann).say(f"/api{place}escalate/").status_code == 200
    done = OperatorAction.objects.filter(action="escalate", result="done", actor=ann)
    assert done.count() == 2


def test_s12_1_another_definition_is_refused_in_words_and_its_buttons_are_disabled(
    signed_in: Client, ann: User
) -> None:
    place = f"/processes/{parcel().pk}/"
    assert button(signed_in.read(place)) == (False, NOT_PARCELS)

    answer = press(signed_in, parcel())
    told = Program(ann).say(f"/api{place}escalate/")

    assert (answer.status_code, told.status_code) == (403, 403)
    assert NOT_PARCELS in answer.content.decode()
    assert told.json()["said"] == NOT_PARCELS
    rows = OperatorAction.objects.filter(action="escalate").order_by("pk")
    found = rows.values_list("result", "instance_id", "detail")
    assert list(found) == [("refused", parcel().pk, NOT_PARCELS)] * 2


def test_s12_1_what_is_taken_away_before_a_press_is_refused(signed_in: Client) -> None:
    signed_in.get(f"/processes/{order().pk}/")
    DefinitionGrant.objects.all().delete()

    answer = press(signed_in, order())

    assert answer.status_code == 403
    assert "Your account may not do this" in answer.content.decode()
    assert order().escalation_level == 0


def test_s12_1_the_command_line_goes_on_with_what_the_person_may(ann: User) -> None:
    words = ["process", "escalate", str(parcel().pk), str(order().pk)]
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command(*words, "--user", "viewer", "--reason", "because", stdout=out)

    assert f"{order().pk}  done" in out.getvalue()
    assert f"{parcel().pk}  refused  {NOT_PARCELS}" in out.getvalue()


# Many


def test_s12_1_operations_on_many_have_what_one_may_act_on(signed_in: Client) -> None:
    page = signed_in.read(NOBODYS)
    assert re.search(r'id="total">\s*1\s*<', page)
    said = between(page, 'id="left-out">', "</p>")
    assert "1 of those that match is left out" in said
    assert PARCELS in said
    assert form(page)["shown"] == "1"

    answer = signed_in.post(NOBODYS, form(page))

    assert answer.status_code == 302, answer.content
    operation = BulkOperation.objects.get()
    assert became(worked_on(operation)) == {order().pk: "done"}
    assert (operation.definitions, operation.left_out) == ([ORDERS], 1)
    text = signed_in.read(f"/operations/{operation.pk}/")
    limited = between(text, 'id="limited">', "</p>")
    assert ORDERS in limited
    assert "1 that matched is of another definition" in limited
    assert parcel().escalation_level == 0


def test_s12_1_items_are_checked_again_when_they_are_worked_on(ann: User) -> None:
    both = grant(ann, PARCELS, "escalate", "start_bulk")
    operation = begun(both, {"owner": "nobody"}, 2, action="escalate")
    Group.objects.get(name=f"{PARCELS} people").delete()

    found = became(worked_on(operation))

    assert found == {order().pk: "done", parcel().pk: "refused"}
    assert operation.items.get(process_id=parcel().pk).detail == NOT_PARCELS


def test_s12_1_what_the_page_has_shown_and_the_person_may_no_more_is_not_begun(
    signed_in: Client, ann: User
) -> None:
    grant(ann, PARCELS, "escalate", "start_bulk")
    page = signed_in.read(NOBODYS)
    assert form(page)["shown"] == "2"
    Group.objects.get(name=f"{PARCELS} people").delete()

    answer = signed_in.post(NOBODYS, form(page))

    assert answer.status_code == 409
    assert "What you may do has changed" in answer.content.decode()
    assert not BulkOperation.objects.exists()


def test_s12_1_a_selection_of_another_definition_is_shown_and_cannot_be_begun(
    signed_in: Client,
) -> None:
    address = f"/operations/begin/?action=escalate&definition={PARCELS}"
    page = signed_in.read(address)
    assert re.search(r'id="begin-button"[^>]*disabled', page)
    assert f'id="begin-why">{NOT_PARCELS}' in page

    assert signed_in.post(address, form(page)).status_code == 403
    assert not BulkOperation.objects.exists()


def test_s12_1_who_may_act_on_all_definitions_of_an_operation_controls_it(
    ann: User, operator: User
) -> None:
    own = begun(ann, {"owner": "nobody"}, 1, action="escalate")
    others = begun(operator, {"owner": "nobody"}, 2, action="escalate")

    assert pause_bulk.refusal(ann, own) == ""
    assert pause_bulk.refusal(ann, others)
    with pytest.raises(PermissionMissing):
        pause_bulk(others.pk, request=asked(ann))
    pause_bulk(own.pk, request=asked(ann))


def test_s12_1_a_program_is_told_what_is_left_out(ann: User) -> None:
    program = Program(ann)

    told = program.get(f"/api{NOBODYS}").json()

    assert (told["shown"], told["left_out"]) == (1, {PARCELS: 1})
    del told["left_out"], told["narrowed"]
    answer = program.say(f"/api{NOBODYS}", **told)
    assert answer.status_code == 200, answer.content
    assert BulkOperation.objects.get().definitions == [ORDERS]


# Failures


def test_s12_1_retry_all_is_there_where_it_is_granted(signed_in: Client) -> None:
    hire()  # or the first page had nothing more urgent to say
    pages = ["/", "/failures/", f"/failures/{failure().fingerprint}/"]
    for address in pages:
        assert "action=retry" in signed_in.read(address), address

    DefinitionGrant.objects.update(definition=PARCELS)

    for address in pages:
        page = signed_in.read(address)
        assert "action=retry" not in page, address
        assert f"Your account may not do this for {ORDERS}." in page, address


def test_s12_1_failures_are_handled_by_who_may_for_theirs(signed_in: Client) -> None:
    newest = failure()
    address = f"/failures/{newest.fingerprint}/mark_handled/"
    for definition, status in ((PARCELS, 403), (ORDERS, 302)):
        DefinitionGrant.objects.update(definition=definition)
        said = {"key": str(uuid4()), "reason": "known", "newest": newest.pk}
        assert signed_in.post(address, said).status_code == status


# Events


def test_s12_1_an_event_is_acted_on_by_who_may_for_whom_it_is(ann: User) -> None:
    event = early("P-9", ParcelScanned("P-9", "east"))
    of_none = early("P-8", ParcelScanned("P-8", "east"))
    InboxEvent.objects.filter(pk=of_none.pk).update(target="")
    of_none.refresh_from_db()
    assert (event.process_id, event.target) == (None, PARCELS)
    assert redeliver.refusal(ann, event) == NOT_PARCELS
    assert redeliver.refusal(ann, of_none)
    with pytest.raises(PermissionMissing):
        redeliver(event.pk, request=asked(ann))
    with pytest.raises(PermissionMissing):
        deliver(event.pk, str(parcel().pk), request=asked(ann))

    now = grant(ann, PARCELS, "redeliver", "deliver")

    assert redeliver(event.pk, request=asked(now)).result == "done"
    # One of no definition counts as what it is given to.
    assert deliver.refusal(now, of_none, parcel()) == ""
    assert deliver.refusal(now, of_none)


def test_s12_1_an_event_is_sent_by_who_may_for_all_who_may_take_it(
    ann: User, signed_in: Client
) -> None:
    def sent(**to: Any) -> None:
        body = {"parcel_id": "P-1", "place": "east"}
        wanted = EventToSend("ParcelScanned", body, f"{uuid4()}", **to)
        send(wanted, request=asked(anew(ann)))

    asking = f"/events/send/?type=ParcelScanned&process={parcel().pk}"
    targets: list[dict[str, Any]] = [
        {"process_id": parcel().pk},
        {"definition": PARCELS, "key": "P-1"},
        {"key": "P-1"},
    ]
    for to in targets:
        with pytest.raises(PermissionMissing, match=PARCELS):
            sent(**to)
    assert f'id="send-why">{NOT_PARCELS}' in signed_in.read(asking)

    grant(ann, PARCELS, "send")

    for to in targets:
        sent(**to)
    assert 'id="send-why"' not in signed_in.read(asking)
    assert InboxEvent.objects.filter(source="console").count() == len(targets)


# Who


def test_s12_1_django_can_ask_as_it_does_for_objects(ann: User, settings: Any) -> None:
    permission = "orchestrator.escalate_processinstance"
    assert not ann.has_perm(permission, order())  # the project has not the backend

    own = "orchestrator.grants.GrantsBackend"
    settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, own]

    mine: list[Any] = [order(), order().definition, ORDERS, failure()]
    others: list[Any] = [None, parcel(), PARCELS, object()]
    assert [ann.has_perm(permission, thing) for thing in mine] == [True] * 4
    assert [ann.has_perm(permission, thing) for thing in others] == [False] * 4
    assert GrantsBackend().authenticate(None) is None


def test_s12_1_who_is_closed_out_or_in_no_group_of_djangos_has_none(ann: User) -> None:
    class Outsider:
        """Somebody of a project whose people are no rows of Django's."""

        is_active = True

        def has_perm(self, permission: str, obj: object = None) -> bool:
            return False

    ann.is_active = False

    for nobody in (ann, Outsider(), AnonymousUser()):
        assert grants_of(nobody) == {}
        assert escalate.forbidden(nobody, ORDERS)


# What it costs


def queries(client: Client, address: str) -> tuple[int, int]:
    """How many queries a page takes, and how many of them are for grants."""
    with CaptureQueriesContext(connection) as found:
        client.read(address)
    table = DefinitionGrant._meta.db_table
    return len(found), sum(table in one["sql"] for one in found)


def test_s12_1_fifty_grants_cost_no_more_than_one_and_rows_cost_nothing(
    ann: User, signed_in: Client
) -> None:
    pages = ["/", "/failures/", f"/failures/{failure().fingerprint}/", "/events/"]
    pages += [f"/processes/{order().pk}/", "/processes/", "/waits/", NOBODYS]

    def asked_of_tables() -> list[tuple[int, int]]:
        return [queries(signed_in, address) for address in pages]

    asked_of_tables()  # what is read once and kept
    before = asked_of_tables()
    assert {mine for _all, mine in before} <= {0, 1}
    for number in range(48):
        grant(ann, f"other-{number}", "escalate")
    assert asked_of_tables() == before

    for _ in range(3):
        failed_order()

    assert {mine for _all, mine in asked_of_tables()} <= {0, 1}


def test_s12_1_who_may_for_all_definitions_needs_no_grant_and_is_asked_for_none(
    operator: User, operating: Client
) -> None:
    for process in (order(), parcel()):
        assert escalate(process.pk, request=asked(operator)).result == "done"
    for address in ("/failures/", "/processes/", NOBODYS, "/events/"):
        assert queries(operating, address)[1] == 0, address


def test_s12_1_open_pages_share_an_answer_among_who_may_the_same() -> None:
    def key(name: str, definition: str) -> SharedKey:
        request: HttpRequest = RequestFactory().get("/", headers={"host": "127.0.0.1"})
        request.user = grant(person(name, *VIEWER_MAY), definition, "escalate")
        return shared_key(request)

    one = key("one", ORDERS)

    assert escalate.forbidden(SharedReader(one), ORDERS) == ""
    assert escalate.forbidden(SharedReader(one), PARCELS) != ""
    assert one == key("other", ORDERS)
    assert one != key("third", PARCELS)


# Giving


def test_s12_1_grants_are_given_in_the_admin_and_it_keeps_who_gave_them(
    admin: Client, administrator: User, viewer: User
) -> None:
    adding = reverse("admin:orchestrator_definitiongrant_add")
    page = admin.read(adding)
    for name in (ORDERS, PARCELS):
        assert f'<option value="{name}">' in page
    offered = {one.codename for one in grantable_permissions()}
    assert {"escalate_processinstance", "run_bulkoperation"} <= offered
    nobodys = {"use_accesstoken", "share_savedview", "import_processinstance"}
    assert offered.isdisjoint(nobodys)
    group = Group.objects.create(name="orders")
    viewer.groups.add(group)
    right = permissions()["escalate_processinstance"]
    said = {"group": group.pk, "definition": ORDERS, "permission": right}

    def allowed() -> bool:
        return not escalate.forbidden(anew(viewer), ORDERS)

    assert not allowed()
    assert admin.post(adding, said).status_code == 302
    assert allowed()
    assert admin.post(adding, said).status_code == 200  # there is one
    assert admin.post(adding, {**said, "definition": "no-such"}).status_code == 200
    row = DefinitionGrant.objects.get()
    deleting = reverse("admin:orchestrator_definitiongrant_delete", args=[row.pk])
    assert admin.post(deleting, {"post": "yes"}).status_code == 302
    assert not allowed()
    entries = LogEntry.objects.filter(user=administrator).order_by("pk")
    assert [one.action_flag for one in entries] == [1, 3]


def test_s12_1_who_may_act_may_not_give_it(operating: Client, operator: User) -> None:
    operator.is_staff = True
    operator.save()

    operating.read(reverse("admin:orchestrator_definitiongrant_add"), status=403)


def test_s12_1_every_action_on_what_is_of_a_definition_can_be_granted_for_one() -> None:
    others = {name for name, one in OPERATIONS.items() if not one.by_definition}

    assert others == set(
        words("import save_view rename_view delete_view make_token revoke_token")
    )
