"""S12.4, S12.5: what a button does a program does by the same class, with a token, and is refused as the button is."""

import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_script_prefix
from django.urls import resolve, reverse
from pytest_django import Settings

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring import curl
from monitoring.api.descriptions import address_of, described
from monitoring.api.wrong_tokens import wrong_tokens
from orchestrator.engine.drain import drain
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
from tests.apps.every_construct.fixtures import helpdesk
from tests.conftest import person
from tests.services.bulk import begun, frozen
from tests.services.forms_of_actions import (
    PLACES,
    failed_order,
    inquiry,
    place_for,
    value_for,
)

__all__ = ["helpdesk"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("world")]

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
DOCS = Path(__file__).parents[2] / "docs"
BY_REST = [name for name, operation in OPERATIONS.items() if operation.by_rest]


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """Nobody has brought a wrong token yet."""
    wrong_tokens.forget()


class Program(Client):
    """What brings a token of somebody's."""

    def __init__(self, owner: User, **more: Any) -> None:
        self.token, value = value_for(owner)
        super().__init__(headers={"authorization": f"Bearer {value}"}, **more)

    def say(self, address: str, **said: Any) -> Any:
        """Post JSON, with a key."""
        body = {"key": str(uuid4()), "reason": "because", **said}
        body = {name: value for name, value in body.items() if value is not ...}
        return self.post(address, body, content_type="application/json")


@pytest.fixture
def program(operator: User) -> Program:
    return Program(operator)


@pytest.fixture(scope="module")
def world(module_db: None, helpdesk: None) -> dict[str, Any]:
    """Make an order that has failed, and an inquiry that waits for a decision; return their ids."""
    return {"order": failed_order().pk, "inquiry": inquiry().pk}


@pytest.fixture
def order(world: dict[str, Any]) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=world["order"])


@pytest.fixture
def inquired(world: dict[str, Any]) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=world["inquiry"])


def at(order: ProcessInstance, name: str) -> str:
    return f"/api/processes/{order.pk}/{name}/"


# Every action


def test_s12_5_every_action_of_the_console_has_an_address_and_a_place_where_it_is_shown() -> (
    None
):
    assert {name for name, one in OPERATIONS.items() if not one.by_rest} == {
        "export",
        "reveal",
        "import",
        "make_token",
    }
    assert set(BY_REST) <= PLACES.keys()
    for one in described():
        place = re.sub(r"\{(visit|event|view|token)\}", "1", one["address"])
        place = re.sub(r"\{(process|operation)\}", str(uuid4()), place)
        place = place.replace("{cause}", "none").partition("?")[0]
        mirrored = str(resolve(place).url_name)
        assert mirrored.startswith("api-")
        shown = place.replace("/api/", "/", 1)
        own = "instance-repair" if one["action"] == "repair" else ""
        assert resolve(shown).url_name == (own or mirrored.removeprefix("api-"))


def test_the_manual_has_every_action_as_it_is_told() -> None:
    text = (DOCS / "api.md").read_text()

    for one in described():
        fields = ", ".join(f"`{name}`" for name in one["fields"] if name not in USUAL)
        assert f"| `{one['action']}` | `{one['address']}` | {fields or '—'} |" in text
    assert text.count("| `/api/") + text.count("` | `/api/") >= len(BY_REST)


USUAL = ("key", "[revision]", "reason", "[reason]")


@pytest.fixture
def targets(order: ProcessInstance, inquired: ProcessInstance) -> dict[str, str]:
    """Something of each kind."""
    run = StepRun.objects.get(instance=inquired, node="verdict")
    now = order.changed_at
    times = dict.fromkeys(("shown_at", "created_at", "changed_at"), now)
    bulk = BulkOperation.objects.create(
        key=uuid4(), action="retry", selection="failures", batch=1, **times
    )
    view = SavedView.objects.create(name="x", about={}, changed_at=now)
    event = InboxEvent.objects.latest("pk")
    return {
        "{process}": str(order.pk),
        "{process}/steps": f"{inquired.pk}/steps",
        "{visit}": str(run.pk),
        "{event}": str(event.pk),
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
    targets: dict[str, str], viewer: User, stranger: User, administrator: User
) -> None:
    targets["{token}"] = str(Program(administrator).token.pk)
    use = Permission.objects.get(codename="use_accesstoken")
    viewer.user_permissions.add(use)
    stranger.user_permissions.add(use)
    people: dict[str, Client] = {
        "viewer": Program(User.objects.get(pk=viewer.pk)),
        "stranger": Program(User.objects.get(pk=stranger.pk)),
        "": Client(),
    }
    wrong = list[tuple[object, ...]]()

    for who, name in product(people, BY_REST):
        wrong_tokens.forget()
        made = OperatorAction.objects.latest("pk").pk
        address, said = call_of(OPERATIONS[name], targets)
        answer = people[who].post(address, said, content_type="application/json")
        expected = (403, "forbidden", False) if who else (401, "unauthorized", False)
        told = answer.json()
        if (answer.status_code, told["error"], told["done"]) != expected:
            wrong.append((who, name, answer.content))
        new = OperatorAction.objects.filter(pk__gt=made)
        if new.filter(result="done").exists():
            wrong.append((who, name, "done"))
        if new.count() != (1 if who == "viewer" else 0):
            wrong.append((who, name, "audited", new.count()))
    assert len(BY_REST) > 30
    assert wrong == []


def call_of(
    operation: Operation, targets: dict[str, str]
) -> tuple[str, dict[str, object]]:
    """The address of an action on something that there is, and what it is told."""
    address = address_of(operation)
    for place in sorted(targets, key=len, reverse=True):
        address = address.replace(place, targets[place])
    given = {one.name: GIVEN[one.form] for one in operation.given}
    said = {"key": str(uuid4()), "reason": "x", **given}
    return address, {**said, **OF_FORM.get(operation.name, {})}


# What is answered


def test_s12_5_the_audit_says_by_which_token(
    program: Program, order: ProcessInstance
) -> None:
    answer = program.say(at(order, "escalate"), revision=order.revision)

    assert answer.json()["process"]["revision"] == order.revision + 1
    row = OperatorAction.objects.get(action="escalate")
    assert row.after["way"] == f"token {program.token.name}"
    assert (row.actor_name, row.address) == ("operator", "127.0.0.1")
    refused = program.say(at(order, "acknowledge"), revision=1)
    assert refused.status_code == 409
    assert OperatorAction.objects.get(action="acknowledge").after["way"]


def test_s12_5_pressed_twice_has_one_effect_and_one_row(
    program: Program, order: ProcessInstance, operator: User, client: Client
) -> None:
    key = str(uuid4())
    client.force_login(operator)
    ways: list[Callable[[], Any]] = [
        lambda: program.say(at(order, "escalate"), key=key),
        lambda: program.post(at(order, "escalate"), {"key": key, "reason": "x"}),
        lambda: program.post(
            at(order, "escalate"), {"reason": "x"}, headers={"idempotency-key": key}
        ),
        # The key of the body counts where the header has another.
        lambda: program.post(
            at(order, "escalate"),
            {"reason": "x", "key": key},
            headers={"idempotency-key": str(uuid4())},
        ),
        lambda: client.post(
            f"/processes/{order.pk}/escalate/", {"key": key, "reason": "x"}
        ),
    ]

    for way in ways:
        assert way().status_code in (200, 302)
    order.refresh_from_db()
    assert order.escalation_level == 1
    assert OperatorAction.objects.filter(action="escalate").count() == 1
    other = program.say(at(order, "pause"), key=key)
    assert (other.status_code, other.json()["error"]) == (409, "refused")


def test_refusals_are_told_apart(program: Program, order: ProcessInstance) -> None:
    stale = program.say(at(order, "escalate"), revision=1)
    refused = program.say(at(order, "unpause"))
    missing = program.say(at(order, "escalate"), key=..., reason="")
    unknown = program.say(at(order, "escalate"), revison=7)
    nothing = program.say(at(order, "explode"))
    nobody = program.say(f"/api/processes/{uuid4()}/escalate/")
    elsewhere = program.get("/api/nothing/at/all")
    method = program.get(at(order, "escalate"))

    told = [(one.status_code, one.json()["error"]) for one in (stale, refused)]
    assert told == [(409, "stale"), (409, "refused")]
    assert missing.status_code == unknown.status_code == 422
    assert missing.json()["errors"].keys() == {"key", "reason"}
    assert unknown.json()["errors"] == {"revison": ["There is no such field."]}
    found = [one.status_code for one in (nothing, nobody, elsewhere, method)]
    assert found == [404, 404, 404, 405]
    assert method["Allow"] == "POST"
    assert order.revision == ProcessInstance.objects.get(pk=order.pk).revision
    for one in (stale, refused, missing, unknown, nothing, nobody, elsewhere, method):
        assert one["Content-Type"] == "application/json"
        assert one["Cache-Control"] == "no-store"
        assert not one.cookies


def test_a_json_value_is_given_as_it_is_or_as_its_text(
    program: Program, inquired: ProcessInstance
) -> None:
    run = StepRun.objects.get(instance=inquired, node="verdict")
    address = f"/api/processes/{inquired.pk}/steps/{run.pk}/skip/"
    values: list[Any] = [{"a": [1]}, "text", None, 7, True]

    for value in values:
        said = {"key": str(uuid4()), "reason": "x"}
        as_json = program.say(address, json=value)
        as_text = program.post(address, {**said, "json": json.dumps(value)})
        for answer in (as_json, as_text):
            assert answer.status_code == 409, (value, answer.content)
            assert "this is no result of" in answer.json()["said"]


def test_a_repair_is_staged_and_applied(
    program: Program, order: ProcessInstance
) -> None:
    stage = f"/api/processes/{order.pk}/repair/stage/"
    move = {"edit": "move", "target": "AwaitingExternalListing"}
    data = {**order.data, "reason": "ordered"}

    staged = program.post(stage, move, content_type="application/json")
    bad = program.post(
        stage, {"edit": "data", "value": 7}, content_type="application/json"
    )
    both = program.post(
        stage, {"edit": "data", "value": data}, content_type="application/json"
    ).json()

    assert staged.json()["staged"] == [move]
    assert (bad.status_code, bad.json()["error"]) == (422, "invalid")
    assert {one["edit"] for one in both["staged"]} == {"move", "data"}
    edits = [move, {"edit": "data", "value": data}]
    done = program.say(at(order, "repair"), edits=edits, revision=order.revision)
    assert done.json()["process"]["step"] == "AwaitingExternalListing"


def test_a_call_that_undoes_an_edit_and_is_made_twice_undoes_one(
    program: Program, order: ProcessInstance
) -> None:
    place = f"/api/processes/{order.pk}/repair"
    retry = {"edit": "retry"}
    move = {"edit": "move", "target": "AwaitingExternalListing"}
    for edit in (move, retry):
        staged = program.post(f"{place}/stage/", edit, content_type="application/json")
    call = {"place": 0, "changed_at": staged.json()["changed_at"]}

    first, second = (
        program.post(f"{place}/undo/", call, content_type="application/json").json()
        for _ in range(2)
    )

    assert first["staged"] == second["staged"] == [retry]
    assert first["changed_at"] == second["changed_at"] != call["changed_at"]
    none = program.post(f"{place}/discard/", {}, content_type="application/json").json()
    assert (none["staged"], none["changed_at"]) == ([], None)


def test_an_operation_on_many_is_looked_at_and_begun(
    program: Program, order: ProcessInstance
) -> None:
    address = "/api/operations/begin/?status=failed&action=retry"
    shown = program.get(address).json()
    assert (shown["shown"], shown["exact"]) == (1, True)

    said = {name: shown[name] for name in ("shown", "shown_at", "exact")}
    begun = program.say(address, **said).json()

    operation = program.get(begun["address"]).json()
    assert operation["status"] == "gathering"
    assert BulkOperation.objects.get().samples == [1, 10]
    paused = program.say(f"{begun['address']}pause_bulk/", reason=...)
    assert paused.json()["operation"]["status"] == "paused"
    everything = program.say("/api/operations/begin/?action=retry", **said)
    assert everything.status_code == 409
    assert program.get("/api/operations/begin/?colour=red").status_code == 404


def test_an_event_is_sent_and_found(program: Program) -> None:
    place_order(Destination.EXTERNAL, "50 MWh", "A-1")
    drain()
    address = "/api/events/send/?type=ListedOnInternal"

    wrong = program.say(address, **{"field-order_id": "A-1"})
    sent = program.say(address, event_id="e-1", **{"field-order_id": "A-1"})

    assert wrong.json()["errors"].keys() == {"event_id"}
    assert sent.json()["done"] is True
    row = InboxEvent.objects.get(event_id="e-1")
    told = {name: sent.json()[name] for name in ("receipt", "verdict", "process")}
    assert told == {"receipt": row.pk, "verdict": row.verdict, "process": None}
    [found] = program.get(sent.json()["address"]).json()["events"]
    assert (found["id"], found["source"]) == ("e-1", "console")
    assert program.get(f"/api/events/{found['event']}/").json() == found
    assert program.say("/api/events/send/?type=Nothing").status_code == 404


def test_lists_are_those_of_the_pages(program: Program, order: ProcessInstance) -> None:
    rows = program.get("/api/processes/?status=failed").json()["processes"]
    assert [(row["process"], row["revision"]) for row in rows] == [
        (str(order.pk), order.revision)
    ]
    shown = program.get(f"/api/processes/{order.pk}/").json()
    assert shown["failures"][0]["cause"]
    assert "escalate" not in shown["refused"]
    assert shown["refused"]["unpause"] == "It is not paused"
    [group] = program.get("/api/failures/").json()["failures"]
    [one] = program.get(f"/api/failures/{group['cause']}/").json()["failures"]
    assert one["process"] == str(order.pk)
    mistaken = program.get("/api/processes/?where=amount+>")
    assert mistaken.status_code == 422
    for place in ("views", "tokens", "operations", "events"):
        assert program.get(f"/api/{place}/").status_code == 200
    assert program.head("/api/processes/").status_code == 200


def test_who_may_not_look_at_events_is_told_nothing_of_them(
    program: Program, operator: User
) -> None:
    look = Permission.objects.get(codename="view_inboxevent")
    operator.user_permissions.remove(look)

    for place in ("/api/events/", "/api/events/1/"):
        assert program.get(place).status_code == 403
    assert program.say("/api/events/1/discard/").status_code == 403
    assert program.get("/api/operations/begin/?of=events&type=X").status_code == 404


def test_s12_1_an_operation_tells_no_condition_on_data_to_who_may_not_see_data(
    order: ProcessInstance, operator: User
) -> None:
    about = {"definition": "order-listing", "where": "destination = both"}
    operation = begun(operator, about, 1, action="escalate")
    place = f"/api/operations/{operation.pk}/"
    guard = Program(person("guard", "view_processinstance", "use_accesstoken"))

    [listed] = guard.get("/api/operations/").json()["operations"]
    paused = Program(operator).say(f"{place}pause_bulk/", revision=operation.revision)

    told = {**about, "where": None}
    assert listed["about"] == guard.get(place).json()["about"] == told
    assert paused.json()["operation"]["about"] == about


def test_s12_1_an_operation_tells_no_event_to_who_may_not_see_events(
    order: ProcessInstance, operator: User
) -> None:
    InboxEvent.objects.update(verdict="unrouted")
    event = InboxEvent.objects.latest("pk")
    about = {"type": event.type}
    operation = begun(operator, about, 1, action="redeliver", selection="events")
    frozen(operation).items.update(detail="nothing takes it")
    place = f"/api/operations/{operation.pk}/"
    guard = Program(person("guard", "view_processinstance", "use_accesstoken"))

    told, whole = guard.get(place).json(), Program(operator).get(place).json()

    assert told["about"] == {"type": None}
    assert {item["detail"] for item in told["items"]} == {None}
    assert whole["about"] == about
    assert {item["detail"] for item in whole["items"]} == {"nothing takes it"}
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


def test_bodies_that_cannot_be_read_are_refused(
    program: Program, order: ProcessInstance
) -> None:
    for body, kind, status in BODIES:
        answer = program.generic("POST", at(order, "escalate"), body, kind)
        told = answer.json()
        assert (answer.status_code, told["done"]) == (status, False), (body[:40], told)
    assert not OperatorAction.objects.filter(action="escalate").exists()


# Calls


def test_a_call_is_one_word_each_and_nothing_a_terminal_acts_upon() -> None:
    text = curl.call(
        "https://a.example/x?a=1&b=2", {"reason": "it's\x1b\u202e", "to": "a b"}
    )

    assert text.splitlines() == [
        "curl 'https://a.example/x?a=1&b=2' \\",
        '  -H "Authorization: Bearer $PROCESSION_TOKEN" \\',
        "  --data-raw 'reason=it%27s%1B%E2%80%AE' \\",
        "  --data-urlencode 'to=a b'",
    ]


def test_a_call_has_the_address_of_the_console_it_is_in(
    operator: User, settings: Settings, order: ProcessInstance
) -> None:
    settings.ROOT_URLCONF = "tests.apps.elsewhere.urls"
    settings.LOGIN_URL = "enter"
    client = Client()
    client.force_login(operator)
    program = Program(operator)

    for prefix in ("", "/branch"):
        settings.FORCE_SCRIPT_NAME = prefix or None
        with override_script_prefix(f"{prefix}/"):
            page = client.get("/ops/operations/begin/?status=failed").content.decode()
            api = reverse("monitoring:api")
            paths = program.get("/ops/api/openapi.json").json()["paths"]
        assert api == f"{prefix}/ops/api/"
        assert [path for path in paths if not path.startswith(api)] == []
        place = f"{prefix}/ops/api/operations/begin/?action=retry&amp;status=failed"
        assert f"curl &#x27;http://testserver{place}&#x27;" in page
    answer = program.say(f"/ops/api/processes/{order.pk}/escalate/")
    assert answer.json()["done"] is True


def test_no_action_on_a_list_costs_more_than_its_page(
    program: Program, order: ProcessInstance
) -> None:
    def asked_for() -> int:
        with CaptureQueriesContext(connection) as found:
            program.get("/api/processes/")
        return len(found)

    asked_for()  # the first is when the token was last used
    few = asked_for()
    for _ in range(20):
        place_order(Destination.INTERNAL, "1 MWh")
    drain()
    assert asked_for() == few


def test_a_place_for_an_action_without_one_says_where_to_make_it(
    operator: User,
) -> None:
    with pytest.raises(LookupError, match="say in"):
        place_for("explode", operator)


def test_a_history_has_no_id_of_an_event_for_who_may_see_neither_events_nor_data(
    order: ProcessInstance,
) -> None:
    bare = Program(person("bare", "view_processinstance", "use_accesstoken"))

    told = bare.get(f"/api/processes/{order.pk}/").json()

    events = [line["event"] for line in told["history"] if line["event"]]
    assert events
    assert {event["id"] for event in events} == {None}


@pytest.mark.parametrize("key", ["12.0", "+12", "1_000", " 12 ", "-1", "9" * 19])
def test_a_key_that_no_page_has_given_is_refused(program: Program, key: str) -> None:
    for place in ("events", "failures"):
        assert program.get(f"/api/{place}/", {"before": key}).status_code == 422, place


def test_a_password_that_a_proxy_asks_for_shuts_nobody_out_of_the_manual(
    client: Client, operator: User
) -> None:
    client.force_login(operator)
    basic = {"authorization": "Basic dXNlcjpwYXNz"}

    assert client.get("/api/docs/", headers=basic).status_code == 200
    assert client.get("/api/openapi.json", headers=basic).status_code == 200
    assert client.get("/api/", headers=basic).status_code == 401
