"""S12.4, S12.5: what a button does a program does by the same class, with a token, and is refused as the button is."""

import json
import re
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_script_prefix
from django.urls import resolve, reverse
from pytest_django import Settings

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.api.descriptions import address_pattern, described_actions
from monitoring.api.wrong_tokens import wrong_tokens
from monitoring.forms import curl
from orchestrator.engine.operations import OPERATIONS, Operation
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    Incident,
    OperatorAction,
    ProcessInstance,
    SavedView,
    StepRun,
)
from orchestrator.testing import run
from tests.apps.every_construct.fixtures import helpdesk
from tests.conftest import VIEWER_MAY, permissions, person
from tests.services.bulk import begun, frozen
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.forms_of_actions import PLACES, failed_order, inquiry, value_for
from tests.services.placing import placed

__all__ = ["helpdesk"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("world")]

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
DOCS = Path(__file__).parents[2] / "docs"
BY_REST = [name for name, operation in OPERATIONS.items() if operation.by_rest]


class Program(Client):
    """What brings a token of somebody's."""

    def __init__(self, owner: User, **more: Any) -> None:
        self.token, value = value_for(owner)
        super().__init__(headers={"authorization": f"Bearer {value}"}, **more)

    def tell(self, address: str, **said: Any) -> Any:
        """Post JSON."""
        return self.post(address, said, content_type="application/json")

    def say(self, address: str, **said: Any) -> Any:
        """Post JSON, with a key and a reason unless these are `...`."""
        body = {"key": str(uuid4()), "reason": "because", **said}
        return self.tell(address, **{k: v for k, v in body.items() if v is not ...})

    def told(self, address: str) -> Any:
        """Return the JSON of an answer."""
        return self.get(address).json()


@pytest.fixture
def program(operator: User) -> Program:
    return Program(operator)


@pytest.fixture(scope="module")
def world(module_db: None, helpdesk: None) -> None:
    """Make an order that has failed, and an inquiry that waits for a decision."""
    failed_order()
    inquiry()


@pytest.fixture
def order() -> ProcessInstance:
    return ProcessInstance.objects.get(name="order-listing")


def verdict() -> StepRun:
    """The visit in which the inquiry waits."""
    return StepRun.objects.get(node="verdict")


def at(order: ProcessInstance, name: str) -> str:
    return f"/api/processes/{order.pk}/{name}/"


# Every action


def test_s12_5_every_action_has_an_address_and_a_place_where_it_is_shown() -> None:
    others = {name for name, one in OPERATIONS.items() if not one.by_rest}
    assert others == {"export", "reveal", "import", "make_token"}
    assert set(BY_REST) <= PLACES.keys()
    for one in described_actions():
        place = re.sub(r"\{(visit|event|view|token)\}", "1", one["address"])
        place = re.sub(r"\{(process|operation)\}", str(uuid4()), place)
        place = place.replace("{cause}", "none").partition("?")[0]
        mirrored = str(resolve(place).url_name)
        assert mirrored.startswith("api-")
        own = "instance-repair" if one["action"] == "repair" else ""
        shown = resolve(place.replace("/api/", "/", 1)).url_name
        assert shown == (own or mirrored.removeprefix("api-"))


def test_the_manual_has_every_action_as_it_is_told() -> None:
    text = (DOCS / "api.md").read_text()
    usual = ("key", "[revision]", "reason", "[reason]")

    for one in described_actions():
        fields = ", ".join(f"`{name}`" for name in one["fields"] if name not in usual)
        assert f"| `{one['action']}` | `{one['address']}` | {fields or '—'} |" in text
    assert text.count("| `/api/") + text.count("` | `/api/") >= len(BY_REST)


@pytest.fixture
def targets(order: ProcessInstance) -> dict[str, str]:
    """Something of each kind."""
    now = order.changed_at
    times = dict.fromkeys(("shown_at", "created_at", "changed_at"), now)
    bulk = BulkOperation.objects.create(
        key=uuid4(), action="retry", selection="failures", batch=1, **times
    )
    view = SavedView.objects.create(name="x", about={}, changed_at=now)
    return {
        "{process}": str(order.pk),
        "{process}/steps": f"{verdict().instance_id}/steps",
        "{visit}": str(verdict().pk),
        "{event}": str(InboxEvent.objects.latest("pk").pk),
        "{cause}": Incident.objects.latest("pk").fingerprint,
        "{operation}": str(bulk.pk),
        "{view}": str(view.pk),
        "{token}": "1",
        "{type}": "ListedOnInternal",
        "{action}&…": "retry&status=failed",
    }


GIVEN: dict[str, object] = {
    "text": "0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",
    "number": 1,
    "days": 1,
    "json": None,
    "flag": True,
    "person": "",
}
OF_FORM: dict[str, dict[str, object]] = {
    "send": {"field-order_id": "A-1", "event_id": "1"},
    "start_bulk": {"shown": 1, "shown_at": "2026-11-23T09:30:00+09:00"},
    "save_view": {"name": "x", "query": "status=failed", "team": True},
    "rename_view": {"name": "y"},
}


def test_s12_4_whoever_is_refused_by_a_button_is_refused_by_rest(
    targets: dict[str, str], administrator: User
) -> None:
    targets["{token}"] = str(Program(administrator).token.pk)
    use = "use_accesstoken"
    people: list[tuple[Client, tuple[object, ...]]] = [
        (Program(person("v", *VIEWER_MAY, use)), (403, "forbidden", False, "refused")),
        (Program(person("s", use)), (403, "forbidden", False)),
        (Client(), (401, "unauthorized", False)),
    ]
    wrong = list[tuple[object, ...]]()

    for (who, expected), name in product(people, BY_REST):
        wrong_tokens.forget()
        made = OperatorAction.objects.latest("pk").pk
        address, said = call_of(OPERATIONS[name], targets)
        answer = who.post(address, said, content_type="application/json")
        told = answer.json()
        new = OperatorAction.objects.filter(pk__gt=made)
        audited = new.values_list("result", flat=True)
        found = (answer.status_code, told["error"], told["done"], *audited)
        if found != expected:
            wrong.append((expected, name, found, answer.content))
    assert len(BY_REST) > 30
    assert wrong == []


def call_of(
    operation: Operation, targets: dict[str, str]
) -> tuple[str, dict[str, object]]:
    """The address of an action on something that there is, and what it is told."""
    address = address_pattern(operation)
    for place in sorted(targets, key=len, reverse=True):
        address = address.replace(place, targets[place])
    given = {one.name: GIVEN[one.form] for one in operation.given}
    said = {"key": str(uuid4()), "reason": "x", **given}
    return address, {**said, **OF_FORM.get(operation.name, {})}


# What is answered


def test_s12_5_the_audit_names_tokens(program: Program, order: ProcessInstance) -> None:
    answer = program.say(at(order, "escalate"), revision=order.revision)

    assert answer.json()["process"]["revision"] == order.revision + 1
    row = OperatorAction.objects.get(action="escalate")
    assert row.after["way"] == f"token {program.token.name}"
    assert (row.actor_name, row.address) == ("operator", "127.0.0.1")
    refused = program.say(at(order, "acknowledge"), revision=1)
    assert refused.status_code == 409
    assert OperatorAction.objects.get(action="acknowledge").after["way"]


def test_s12_5_pressed_twice_has_one_effect_and_one_row(
    program: Program, order: ProcessInstance, operating: Client
) -> None:
    key, place = str(uuid4()), at(order, "escalate")
    said, header = {"key": key, "reason": "x"}, "idempotency-key"
    ways: list[tuple[Client, str, dict[str, str], dict[str, str]]] = [
        (program, place, said, {}),
        (program, place, {"reason": "x"}, {header: key}),
        # The key of the body counts where the header has another.
        (program, place, said, {header: str(uuid4())}),
        (operating, place.removeprefix("/api"), said, {}),
    ]

    assert program.say(place, key=key).status_code == 200
    for client, address, form, headers in ways:
        answer = client.post(address, form, headers=headers)
        assert answer.status_code in (200, 302)
    order.refresh_from_db()
    assert order.escalation_level == 1
    assert OperatorAction.objects.filter(action="escalate").count() == 1
    other = program.say(at(order, "pause"), key=key)
    assert (other.status_code, other.json()["error"]) == (409, "refused")


def test_refusals_are_told_apart(program: Program, order: ProcessInstance) -> None:
    place = at(order, "escalate")
    conflicts = [program.say(place, revision=1), program.say(at(order, "unpause"))]
    missing = program.say(place, key=..., reason="")
    unknown = program.say(place, revison=7)
    nowhere = [
        program.say(at(order, "explode")),
        program.say(f"/api/processes/{uuid4()}/escalate/"),
        program.get("/api/nothing/at/all"),
    ]
    method = program.get(place)

    answers = [*conflicts, missing, unknown, *nowhere, method]
    statuses = [one.status_code for one in answers]
    assert statuses == [409, 409, 422, 422, 404, 404, 404, 405]
    assert [one.json()["error"] for one in conflicts] == ["stale", "refused"]
    assert missing.json()["errors"].keys() == {"key", "reason"}
    assert unknown.json()["errors"] == {"revison": ["There is no such field."]}
    assert method["Allow"] == "POST"
    assert order.revision == ProcessInstance.objects.get(pk=order.pk).revision
    for one in answers:
        assert one["Content-Type"] == "application/json"
        assert one["Cache-Control"] == "no-store"
        assert not one.cookies


def test_a_json_value_is_given_as_it_is_or_as_its_text(program: Program) -> None:
    run = verdict()
    address = f"/api/processes/{run.instance_id}/steps/{run.pk}/skip/"
    values: list[Any] = [{"a": [1]}, "text", None, 7, True]

    for value in values:
        as_text = {"key": str(uuid4()), "reason": "x", "json": json.dumps(value)}
        answers = program.say(address, json=value), program.post(address, as_text)
        for answer in answers:
            assert answer.status_code == 409, (value, answer.content)
            assert "this is no result of" in answer.json()["said"]


MOVE = {"edit": "move", "target": "AwaitingExternalListing"}


def test_a_repair_is_staged_and_applied_and_a_call_that_undoes_an_edit_undoes_one(
    program: Program, order: ProcessInstance
) -> None:
    place = f"/api/processes/{order.pk}/repair"
    data = {"edit": "data", "value": {**order.data, "reason": "ordered"}}

    assert program.tell(f"{place}/stage/", **MOVE).json()["staged"] == [MOVE]
    bad = program.tell(f"{place}/stage/", edit="data", value=7)
    assert (bad.status_code, bad.json()["error"]) == (422, "invalid")
    both = program.tell(f"{place}/stage/", **data).json()
    assert [one["edit"] for one in both["staged"]] == ["data", "move"]
    call = {"place": 0, "changed_at": both["changed_at"]}
    first, second = (program.tell(f"{place}/undo/", **call).json() for _ in range(2))
    assert first["staged"] == second["staged"] == [MOVE]
    assert first["changed_at"] == second["changed_at"] != call["changed_at"]
    none = program.tell(f"{place}/discard/").json()
    assert (none["staged"], none["changed_at"]) == ([], None)
    edits = [MOVE, data]
    done = program.say(at(order, "repair"), edits=edits, revision=order.revision)
    assert done.json()["process"]["step"] == "AwaitingExternalListing"


def test_an_operation_on_many_is_looked_at_and_begun(program: Program) -> None:
    address = "/api/operations/begin/?status=failed&action=retry"
    shown = program.told(address)
    assert (shown["shown"], shown["exact"]) == (1, True)

    said = {name: shown[name] for name in ("shown", "shown_at", "exact")}
    begun = program.say(address, **said).json()
    place = begun["address"]

    assert (begun["said"], program.told(place)["status"]) == ("Begun.", "gathering")
    assert BulkOperation.objects.get().samples == [1, 10]
    paused = program.say(f"{place}pause_bulk/", reason=...)
    assert paused.json()["operation"]["status"] == "paused"
    everything = program.say("/api/operations/begin/?action=retry", **said)
    assert everything.status_code == 409
    assert program.get("/api/operations/begin/?colour=red").status_code == 404


def test_an_event_is_sent_and_found(program: Program) -> None:
    placed(Destination.EXTERNAL, key="A-1")
    address = "/api/events/send/?type=ListedOnInternal"

    wrong = program.say(address, **{"field-order_id": "A-1"})
    sent = program.say(address, event_id="e-1", **{"field-order_id": "A-1"}).json()

    assert wrong.json()["errors"].keys() == {"event_id"}
    row = InboxEvent.objects.get(event_id="e-1")
    told = {"done": True, "receipt": row.pk, "verdict": row.verdict, "process": None}
    assert sent | told == sent
    [found] = program.told(sent["address"])["events"]
    assert (found["id"], found["source"]) == ("e-1", "console")
    assert program.told(f"/api/events/{found['event']}/") == found
    assert program.say("/api/events/send/?type=Nothing").status_code == 404


def test_lists_are_those_of_the_pages(program: Program, order: ProcessInstance) -> None:
    [row] = program.told("/api/processes/?status=failed")["processes"]
    assert (row["process"], row["revision"]) == (str(order.pk), order.revision)
    shown = program.told(f"/api/processes/{order.pk}/")
    assert shown["failures"][0]["cause"]
    assert "escalate" not in shown["refused"]
    assert shown["refused"]["unpause"] == "It is not paused"
    [group] = program.told("/api/failures/")["failures"]
    [one] = program.told(f"/api/failures/{group['cause']}/")["failures"]
    assert one["process"] == str(order.pk)
    assert program.get("/api/processes/?where=amount+>").status_code == 422
    assert program.head("/api/processes/").status_code == 200


def test_who_may_see_no_events_is_told_none(program: Program, operator: User) -> None:
    operator.user_permissions.remove(permissions()["view_inboxevent"])

    for place in ("/api/events/", "/api/events/1/"):
        assert program.get(place).status_code == 403
    assert program.say("/api/events/1/discard/").status_code == 403
    assert program.get("/api/operations/begin/?of=events&type=X").status_code == 404


def a_guard() -> Program:
    """Somebody who may see processes, and neither data nor events."""
    return Program(person("guard", "view_processinstance", "use_accesstoken"))


def test_s12_1_an_operation_tells_neither_data_nor_events_to_who_may_not_see_them(
    program: Program, operator: User
) -> None:
    InboxEvent.objects.update(verdict="unrouted")
    of_data = {"definition": "order-listing", "where": "destination = both"}
    of_event = {"type": InboxEvent.objects.latest("pk").type}
    one = begun(operator, of_data, 1, action="escalate")
    other = begun(operator, of_event, 1, action="redeliver", selection="events")
    frozen(other).items.update(detail="nothing takes it")
    guard = a_guard()

    def told(who: Program) -> list[Any]:
        found = [who.told(f"/api/operations/{pk}/") for pk in (one.pk, other.pk)]
        details = {item["detail"] for item in found[1]["items"]}
        return [found[0]["about"], found[1]["about"], details]

    assert told(guard) == [{**of_data, "where": None}, {"type": None}, {None}]
    assert told(program) == [of_data, of_event, {"nothing takes it"}]
    listed = guard.told("/api/operations/")["operations"]
    assert [row["about"] for row in listed] == [told(guard)[1], told(guard)[0]]
    place = f"/api/operations/{one.pk}/pause_bulk/"
    paused = program.say(place, revision=one.revision)
    assert paused.json()["operation"]["about"] == of_data
    InboxEvent.objects.update(verdict="started")


# Bodies


BODIES: list[tuple[bytes, str, int]] = [
    (b"{", JSON, 400),
    (b"[]", JSON, 422),
    (b'{"key": 1, "key": 2}', JSON, 400),
    (b'{"a": ' + b"[" * 100_000, JSON, 413),
    (json.dumps(dict.fromkeys(map(str, range(5_001)))).encode(), JSON, 413),
    (b'{"reason": "\\ud800", "key": "\\u0000"}', JSON, 400),
    (b'{"revision": ' + b"9" * 40 + b"}", JSON, 422),
    (b'{"revision": ' + b"9" * 5_000 + b"}", JSON, 400),
    (b'{"reason": "a\\u0000b"}', JSON, 400),
    (b"\xff", JSON, 400),
    (b"a=b", "text/plain", 415),
    (b"x" * 1_048_577, JSON, 413),
    (b"x" * 1_048_577, FORM, 413),
    (b"a=%ff%00", FORM, 422),
    (b"", JSON, 422),
    (b"--x", "multipart/form-data; boundary=x", 422),
    (b"--x", "multipart/form-data", 400),
    (b"a=1&" * 2_000, FORM, 400),
]


def test_broken_bodies_are_refused(program: Program, order: ProcessInstance) -> None:
    for body, kind, status in BODIES:
        answer = program.generic("POST", at(order, "escalate"), body, kind)
        told = answer.json()
        assert (answer.status_code, told["done"]) == (status, False), (body[:40], told)
    assert not OperatorAction.objects.filter(action="escalate").exists()


# Calls


def test_a_call_is_one_word_each_and_nothing_a_terminal_acts_upon() -> None:
    text = curl.curl_call(
        "https://a.example/x?a=1&b=2", {"reason": "it's\x1b\u202e", "to": "a b"}
    )

    assert text.splitlines() == [
        "curl 'https://a.example/x?a=1&b=2' \\",
        '  -H "Authorization: Bearer $PROCESSION_TOKEN" \\',
        "  --data-raw 'reason=it%27s%1B%E2%80%AE' \\",
        "  --data-urlencode 'to=a b'",
    ]


def test_a_call_has_the_address_of_the_console_it_is_in(
    operating: Client, program: Program, settings: Settings, order: ProcessInstance
) -> None:
    settings.ROOT_URLCONF = "tests.apps.elsewhere.urls"
    settings.LOGIN_URL = "enter"

    for prefix in ("", "/branch"):
        settings.FORCE_SCRIPT_NAME = prefix or None
        with override_script_prefix(f"{prefix}/"):
            page = operating.read("/ops/operations/begin/?status=failed")
            api = reverse("monitoring:api")
            paths = program.told("/ops/api/openapi.json")["paths"]
        assert api == f"{prefix}/ops/api/"
        assert [path for path in paths if not path.startswith(api)] == []
        place = f"{prefix}/ops/api/operations/begin/?action=retry&amp;status=failed"
        assert f"curl &#x27;http://testserver{place}&#x27;" in page
    answer = program.say(f"/ops/api/processes/{order.pk}/escalate/")
    assert answer.json()["done"] is True


def test_no_action_on_a_list_costs_more_than_its_page(program: Program) -> None:
    def asked_for() -> int:
        with CaptureQueriesContext(connection) as found:
            program.get("/api/processes/")
        return len(found)

    asked_for()  # the first is when the token was last used
    few = asked_for()
    for _ in range(20):
        place_order(Destination.INTERNAL, "1 MWh")
    run()
    assert asked_for() == few


@cases("key", "12.0", "+12", "1_000", " 12 ", "-1", "9" * 19)
def test_a_key_that_no_page_has_given_is_refused(program: Program, key: str) -> None:
    for place in ("events", "failures"):
        assert program.get(f"/api/{place}/", {"before": key}).status_code == 422, place


def test_a_proxys_password_shuts_nobody_out_of_the_manual(operating: Client) -> None:
    expected = {"docs/": 200, "openapi.json": 200, "": 401}
    for path, status in expected.items():
        basic = {"authorization": "Basic dXNlcjpwYXNz"}
        operating.read(f"/api/{path}", status=status, headers=basic)
