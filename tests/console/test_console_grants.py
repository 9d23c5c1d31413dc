"""S12.1, permissions by definition: what a group may do with the processes of one definition, and with no others."""

import os
import re
import subprocess
import sys
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.core.management import call_command
from django.db import connection
from django.http import HttpRequest
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from monitoring.admin.grants import grantable
from monitoring.api.wrong_tokens import wrong_tokens
from monitoring.sharing import SharedKey, SharedReader, key_of
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
from tests.conftest import VIEWER_MAY, person
from tests.services.bulk import asked, begun, worked_on
from tests.services.cases import words
from tests.services.client import Client
from tests.services.forms_of_actions import failed_order, value_for
from tests.services.hired import hire
from tests.services.pressing import form

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

ORDERS, PARCELS = "order-listing", "shipping"
NOBODYS = "/operations/begin/?action=escalate&owner=nobody"
"""Where an action on the processes of all definitions is begun."""
NOT_PARCELS = f"Your account may not do this for {PARCELS}."


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """Nobody has brought a wrong token yet."""
    wrong_tokens.forget()


def grant(user: User, definition: str, *operations: str) -> Group:
    """Put somebody into a group that may do this for one definition."""
    group, _new = Group.objects.get_or_create(name=f"{definition} people")
    for name in operations:
        one = OPERATIONS[name]
        permission = Permission.objects.get(
            codename=one.codename, content_type__app_label=one.model._meta.app_label
        )
        given: dict[str, Any] = {"group": group, "definition": definition}
        DefinitionGrant.objects.get_or_create(permission=permission, **given)
    user.groups.add(group)
    return group


def take(*operations: str) -> None:
    for name in operations:
        codename = OPERATIONS[name].codename
        DefinitionGrant.objects.filter(permission__codename=codename).delete()


def anew(user: User) -> User:
    """The same person as another request reads them."""
    return User.objects.get(pk=user.pk)


@pytest.fixture
def ann(viewer: User) -> User:
    """Return somebody who may look at everything, and act on orders alone."""
    names = tuple(
        words("""escalate retry start_bulk mark_handled redeliver send deliver""")
    )
    grant(viewer, ORDERS, *names)
    viewer.user_permissions.add(Permission.objects.get(codename="use_accesstoken"))
    return anew(viewer)


@pytest.fixture
def signed_in(client: Client, ann: User) -> Client:
    client.force_login(ann)
    return client


@pytest.fixture(scope="module", autouse=True)
def world(module_db: None, parcels: None) -> tuple[UUID, UUID]:
    """An order that has failed, and a parcel."""
    return failed_order().pk, place("P-1").pk


@pytest.fixture
def order(world: tuple[UUID, UUID]) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=world[0])


@pytest.fixture
def parcel(world: tuple[UUID, UUID]) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=world[1])


def press(client: Client, process: ProcessInstance, name: str = "escalate") -> Any:
    said = {"key": str(uuid4()), "reason": "because"}
    return client.post(f"/processes/{process.pk}/{name}/", said)


def button(page: str, id: str) -> tuple[bool, str]:
    """Whether a button can be pressed, and why not."""
    before, found, rest = page.partition(f'id="{id}"')
    assert found, f"no {id}"
    why = page.partition(f'id="{id}-why" role="tooltip">')[2].partition("<")[0]
    tag = before.rpartition("<")[2] + rest.partition(">")[0]
    return 'aria-disabled="true"' not in tag, why


def became(operation: BulkOperation) -> dict[Any, str]:
    """What became of each process of an operation."""
    return dict(operation.items.values_list("process_id", "verdict"))


# One process


def test_s12_1_a_granted_definition_is_acted_on_by_page_and_by_rest(
    signed_in: Client, ann: User, order: ProcessInstance
) -> None:
    page = signed_in.read(f"/processes/{order.pk}/")
    assert button(page, "escalate-button") == (True, "")

    assert press(signed_in, order).status_code == 302

    _token, value = value_for(ann)
    program = Client(headers={"authorization": f"Bearer {value}"})
    said = {"key": str(uuid4()), "reason": "because"}
    answer = program.post(
        f"/api/processes/{order.pk}/escalate/", said, content_type="application/json"
    )
    assert answer.status_code == 200, answer.content
    done = OperatorAction.objects.filter(action="escalate", result="done", actor=ann)
    assert done.count() == 2


def test_s12_1_another_definition_is_refused_in_words_and_its_buttons_are_disabled(
    signed_in: Client, ann: User, parcel: ProcessInstance
) -> None:
    page = signed_in.read(f"/processes/{parcel.pk}/")
    assert button(page, "escalate-button") == (False, NOT_PARCELS)

    answer = press(signed_in, parcel)

    assert answer.status_code == 403
    assert NOT_PARCELS in answer.content.decode()
    _token, value = value_for(ann)
    program = Client(headers={"authorization": f"Bearer {value}"})
    said = {"key": str(uuid4()), "reason": "because"}
    told = program.post(
        f"/api/processes/{parcel.pk}/escalate/", said, content_type="application/json"
    )
    assert (told.status_code, told.json()["said"]) == (403, NOT_PARCELS)
    assert not OperatorAction.objects.filter(result="done", action="escalate").exists()
    row = OperatorAction.objects.filter(result="refused").latest("pk")
    assert (row.instance_id, row.detail) == (parcel.pk, NOT_PARCELS)


def test_s12_1_what_is_taken_away_between_page_and_press_is_refused(
    signed_in: Client, order: ProcessInstance
) -> None:
    signed_in.get(f"/processes/{order.pk}/")
    take("escalate")

    answer = press(signed_in, order)

    assert answer.status_code == 403
    assert "Your account may not do this" in answer.content.decode()
    order.refresh_from_db()
    assert order.escalation_level == 0


def test_s12_1_who_has_it_for_all_definitions_needs_no_grant(
    operator: User, order: ProcessInstance, parcel: ProcessInstance
) -> None:
    for process in (order, parcel):
        assert escalate(process.pk, request=asked(operator)).result == "done"


def test_s12_1_the_command_line_goes_on_with_what_the_person_may(
    ann: User, order: ProcessInstance, parcel: ProcessInstance
) -> None:
    words = ["process", "escalate", str(parcel.pk), str(order.pk)]
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command(*words, "--user", "viewer", "--reason", "because", stdout=out)

    said = out.getvalue()
    assert f"{order.pk}  done" in said
    assert f"{parcel.pk}  refused  {NOT_PARCELS}" in said


# Many


def test_s12_1_an_operation_on_many_holds_only_what_the_person_may_act_on(
    signed_in: Client, order: ProcessInstance, parcel: ProcessInstance
) -> None:
    page = signed_in.read(NOBODYS)
    assert re.search(r'id="total">\s*1\s*<', page)
    [said] = re.findall(r'id="left-out">.*?</p>', page, re.DOTALL)
    assert "1 of those that match is left out" in said
    assert PARCELS in said
    assert form(page)["shown"] == "1"

    answer = signed_in.post(NOBODYS, form(page))

    assert answer.status_code == 302, answer.content
    operation = BulkOperation.objects.get()
    assert became(worked_on(operation)) == {order.pk: "done"}
    assert (operation.definitions, operation.left_out) == ([ORDERS], 1)
    text = signed_in.read(f"/operations/{operation.pk}/")
    [limited] = re.findall(r'id="limited">.*?</p>', text, re.DOTALL)
    assert ORDERS in limited
    assert "1 that matched is of another definition" in limited
    parcel.refresh_from_db()
    assert parcel.escalation_level == 0


def test_s12_1_items_are_checked_again_when_they_are_worked_on(
    ann: User, order: ProcessInstance, parcel: ProcessInstance
) -> None:
    grant(ann, PARCELS, "escalate", "start_bulk")
    operation = begun(anew(ann), {"owner": "nobody"}, 2, action="escalate")
    Group.objects.get(name=f"{PARCELS} people").delete()

    found = became(worked_on(operation))

    assert found == {order.pk: "done", parcel.pk: "refused"}
    detail = operation.items.get(process_id=parcel.pk).detail
    assert detail == NOT_PARCELS


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
    assert re.search(rf'id="begin-why">{re.escape(NOT_PARCELS)}', page)

    answer = signed_in.post(address, form(page))

    assert answer.status_code == 403
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
    _token, value = value_for(ann)
    program = Client(headers={"authorization": f"Bearer {value}"})

    told = program.get(f"/api{NOBODYS}").json()

    assert (told["shown"], told["left_out"]) == (1, {PARCELS: 1})
    said = {**told, "key": str(uuid4()), "reason": "because"}
    sent = {k: v for k, v in said.items() if k not in ("left_out", "narrowed")}
    answer = program.post(f"/api{NOBODYS}", sent, content_type="application/json")
    assert answer.status_code == 200, answer.content
    assert BulkOperation.objects.get().definitions == [ORDERS]


# Failures


def test_s12_1_retry_all_is_there_for_the_failures_of_a_granted_definition(
    signed_in: Client,
) -> None:
    hire()  # or the first page had nothing more urgent to say
    cause = Incident.objects.open().latest("pk").fingerprint
    pages = ["/", "/failures/", f"/failures/{cause}/"]
    for address in pages:
        page = signed_in.read(address)
        assert "action=retry" in page, address

    DefinitionGrant.objects.update(definition=PARCELS)

    for address in pages:
        page = signed_in.read(address)
        assert "action=retry" not in page, address
        assert f"Your account may not do this for {ORDERS}." in page, address


def test_s12_1_a_group_of_failures_is_handled_by_who_may_for_its_definition(
    signed_in: Client,
) -> None:
    newest = Incident.objects.open().latest("pk")
    address = f"/failures/{newest.fingerprint}/mark_handled/"

    def marked() -> int:
        said = {"key": str(uuid4()), "reason": "known", "newest": newest.pk}
        return signed_in.post(address, said).status_code

    DefinitionGrant.objects.update(definition=PARCELS)
    assert marked() == 403
    DefinitionGrant.objects.update(definition=ORDERS)
    assert marked() == 302


# Events


def test_s12_1_an_event_is_acted_on_by_who_may_for_whom_it_is(
    ann: User, parcel: ProcessInstance
) -> None:
    event = early("P-9", ParcelScanned("P-9", "east"))
    assert (event.process_id, event.target) == (None, PARCELS)
    assert redeliver.refusal(ann, event) == NOT_PARCELS
    with pytest.raises(PermissionMissing):
        redeliver(event.pk, request=asked(ann))
    with pytest.raises(PermissionMissing):
        deliver(event.pk, str(parcel.pk), request=asked(ann))

    grant(ann, PARCELS, "redeliver", "deliver")

    now = anew(ann)
    assert redeliver(event.pk, request=asked(now)).result == "done"


def test_s12_1_an_event_of_no_definition_counts_as_what_it_is_given_to(
    ann: User, parcel: ProcessInstance
) -> None:
    event = early("P-9", ParcelScanned("P-9", "east"))
    InboxEvent.objects.filter(pk=event.pk).update(target="")

    assert redeliver.refusal(ann, InboxEvent.objects.get(pk=event.pk))
    grant(ann, PARCELS, "deliver")

    now = anew(ann)
    found = InboxEvent.objects.get(pk=event.pk)
    assert deliver.refusal(now, found, parcel) == ""
    assert deliver.refusal(now, found)


def test_s12_1_an_event_is_sent_by_who_may_for_all_who_may_take_it(
    ann: User, signed_in: Client, parcel: ProcessInstance
) -> None:
    def sent(**to: Any) -> None:
        wanted = EventToSend(
            "ParcelScanned", {"parcel_id": "P-1", "place": "east"}, f"{uuid4()}", **to
        )
        send(wanted, request=asked(anew(ann)))

    asking = f"/events/send/?type=ParcelScanned&process={parcel.pk}"
    targets: list[dict[str, Any]] = [
        {"process_id": parcel.pk},
        {"definition": PARCELS, "key": "P-1"},
        {"key": "P-1"},
    ]
    for to in targets:
        with pytest.raises(PermissionMissing, match=PARCELS):
            sent(**to)
    page = signed_in.read(asking)
    assert re.search(rf'id="send-why">{re.escape(NOT_PARCELS)}', page)

    grant(ann, PARCELS, "send")

    for to in targets:
        sent(**to)
    assert 'id="send-why"' not in signed_in.read(asking)
    assert InboxEvent.objects.filter(source="console").count() == len(targets)


# Who


def test_s12_1_django_can_ask_as_it_does_for_objects(
    ann: User, order: ProcessInstance, parcel: ProcessInstance, settings: Any
) -> None:
    permission = "orchestrator.escalate_processinstance"
    assert not ann.has_perm(permission, order)  # the project has not the backend

    own = "orchestrator.grants.GrantsBackend"
    settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, own]

    failure = Incident.objects.open().latest("pk")
    mine: list[Any] = [order, order.definition, ORDERS, failure]
    for thing in mine:
        assert ann.has_perm(permission, thing)
    others: list[Any] = [None, parcel, PARCELS, object()]
    for thing in others:
        assert not ann.has_perm(permission, thing)
    assert GrantsBackend().authenticate(None) is None


def test_s12_1_who_is_closed_out_or_in_no_group_of_djangos_has_no_grants(
    ann: User,
) -> None:
    class Outsider:
        """Somebody of a project whose people are no rows of Django's."""

        is_active = True

        def has_perm(self, permission: str, obj: object = None) -> bool:
            return False

    ann.is_active = False

    for nobody in (ann, Outsider(), AnonymousUser()):
        assert grants_of(nobody) == {}
        assert escalate.forbidden(nobody, ORDERS)


OTHER_PEOPLE = """
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.contrib.auth.models import Group, Permission
from orchestrator.engine.operations import escalate
from orchestrator.models import DefinitionGrant
from tests.apps.elsewhere.models import Member
member = Member.objects.create(email="a@example.org")
group = Group.objects.create(name="orders")
right = Permission.objects.get(codename="escalate_processinstance")
DefinitionGrant.objects.create(group=group, definition="order-listing", permission=right)
member.groups.add(group)
print([escalate.forbidden(member, name) for name in ("order-listing", "shipping")])
"""


@pytest.mark.once
def test_s12_1_people_may_be_of_the_projects_own_kind(tmp_path: Any) -> None:
    environ = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.apps.elsewhere.settings",
        "DATABASE_URL": "",
        "PROCESSION_DATA_DIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PEOPLE],
        cwd=settings.BASE_DIR,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"['', '{NOT_PARCELS}']"


# What it costs


def test_s12_1_fifty_grants_cost_no_more_than_one_and_rows_cost_nothing(
    ann: User, signed_in: Client, order: ProcessInstance
) -> None:
    failed = Incident.objects.open().latest("pk")
    pages = ["/", "/failures/", f"/failures/{failed.fingerprint}/", "/events/"]
    pages += [f"/processes/{order.pk}/", "/processes/", "/waits/", NOBODYS]

    def asked_of_tables() -> dict[str, tuple[int, int]]:
        found = {}
        for address in pages:
            with CaptureQueriesContext(connection) as queries:
                assert signed_in.get(address).status_code == 200
            table = DefinitionGrant._meta.db_table
            mine = [one for one in queries if table in one["sql"]]
            found[address] = (len(queries), len(mine))
        return found

    asked_of_tables()  # what is read once and kept
    before = asked_of_tables()
    assert {mine for _all, mine in before.values()} <= {0, 1}
    for number in range(48):
        grant(ann, f"other-{number}", "escalate")
    assert asked_of_tables() == before

    for _ in range(3):
        failed_order()

    after = asked_of_tables()
    assert {mine for _all, mine in after.values()} <= {0, 1}


def test_s12_1_who_may_for_all_definitions_is_asked_for_no_grants(
    operating: Client,
) -> None:
    for address in ("/failures/", "/processes/", NOBODYS, "/events/"):
        with CaptureQueriesContext(connection) as queries:
            assert operating.get(address).status_code == 200
        table = DefinitionGrant._meta.db_table
        assert [one["sql"] for one in queries if table in one["sql"]] == [], address


def test_s12_1_open_pages_share_an_answer_among_who_may_the_same(
    viewer: User, operator: User
) -> None:
    other = person("other", *VIEWER_MAY)
    grant(viewer, ORDERS, "escalate")
    grant(other, ORDERS, "escalate")

    def key(user: User) -> SharedKey:
        request: HttpRequest = RequestFactory().get("/", headers={"host": "127.0.0.1"})
        request.user = anew(user)
        return key_of(request)

    assert escalate.forbidden(SharedReader(key(viewer)), ORDERS) == ""
    assert escalate.forbidden(SharedReader(key(viewer)), PARCELS) != ""
    assert key(viewer) == key(other)
    third = person("third", *VIEWER_MAY)
    grant(third, PARCELS, "escalate")
    assert key(viewer) != key(third)


# Giving


def test_s12_1_grants_are_given_in_the_admin_and_it_keeps_who_gave_them(
    admin: Client, administrator: User, viewer: User
) -> None:
    adding = reverse("admin:orchestrator_definitiongrant_add")
    page = admin.read(adding)
    for name in (ORDERS, PARCELS):
        assert f'<option value="{name}">' in page
    offered = {one.codename for one in grantable()}
    assert {"escalate_processinstance", "run_bulkoperation"} <= offered
    assert offered.isdisjoint(
        {"use_accesstoken", "share_savedview", "import_processinstance"}
    )
    group = Group.objects.create(name="orders")
    viewer.groups.add(group)
    right = Permission.objects.get(codename="escalate_processinstance")
    said = {"group": group.pk, "definition": ORDERS, "permission": right.pk}

    def allowed() -> bool:
        return not escalate.forbidden(anew(viewer), ORDERS)

    assert not allowed()
    assert admin.post(adding, said).status_code == 302
    assert allowed()
    assert admin.post(adding, said).status_code == 200  # there is one
    wrong = {**said, "definition": "no-such"}
    assert admin.post(adding, wrong).status_code == 200
    grant_row = DefinitionGrant.objects.get()
    place_of_it = reverse(
        "admin:orchestrator_definitiongrant_delete", args=[grant_row.pk]
    )
    assert admin.post(place_of_it, {"post": "yes"}).status_code == 302
    assert not allowed()
    entries = LogEntry.objects.filter(user=administrator).order_by("pk")
    assert [one.action_flag for one in entries] == [1, 3]


def test_s12_1_who_may_act_may_not_give_it_to_others(
    operating: Client, operator: User
) -> None:
    operator.is_staff = True
    operator.save()

    answer = operating.get(reverse("admin:orchestrator_definitiongrant_add"))

    assert answer.status_code == 403


def test_s12_1_every_action_on_what_is_of_a_definition_can_be_granted_for_one() -> None:
    others = {name for name, one in OPERATIONS.items() if not one.by_definition}

    assert others == {
        "import",
        "save_view",
        "rename_view",
        "delete_view",
        "make_token",
        "revoke_token",
    }
