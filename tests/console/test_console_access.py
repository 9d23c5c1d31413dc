"""Who may open what: every route of the site against every kind of person."""

import re
from collections.abc import Iterable, Iterator
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from examples.order_listing.messages import Destination, ListedOnInternal
from examples.order_listing.orders import place_order
from orchestrator import send_event, start_process
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import OPERATIONS, on_processes
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from tests.apps.every_construct.processes import Inquiry
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.invariants import undone

pytestmark = [pytest.mark.django_db, pytest.mark.once]

Targets = dict[str, UUID | int | str]
SIGN_IN, SIGNED_OUT, FORBIDDEN, SHOWN = 302, 401, 403, 200

PAGES = {
    "instances-export": ["csv"],
    "definitions": [],
    "definition": ["order-listing"],
    "picture": ["order-listing", "svg"],
    "versions": ["order-listing"],
    "compare": ["order-listing"],
    "instances": [],
    "instance": ["process"],
    "instance-picture": ["process"],
    "instance-messages": ["process"],
    "instance-repair": ["process"],
    "instance-secrets": ["process"],
    "instance-ledger": ["process"],
    "instance-ledger-rows": ["process"],
    "instance-elements": ["process", "csv"],
    "saved-views": [],
    "tokens": [],
    "waits": [],
    "stalled": [],
    "decisions": [],
    "events": [],
    "send-event": [],
    "audit": [],
    "audit-export": ["csv"],
    "failures": [],
    "failure-group": ["cause"],
    "operations": [],
    "begin-operation": [],
    "bulk-operation": ["bulk"],
}
BUTTONS = {
    "retry": ["process"],
    "skip_command": ["process"],
    "escalate": ["process"],
    "pause": ["process"],
    "assign": ["process"],
    "mark_handled": ["cause"],
    "assign_failures": ["cause"],
    "pause_bulk": ["bulk"],
    "cancel_bulk": ["bulk"],
    "redeliver": ["event"],
    "discard": ["event"],
    "deliver": ["event"],
}
ROUTES = {
    "process": "act",
    "run": "act-on-step",
    "event": "act-on-event",
    "bulk": "act-on-bulk",
    "cause": "act-on-failures",
    "view": "act-on-view",
    "token": "act-on-token",
}
ELSEWHERE = {
    "find",
    "live",
    "change-repair",
    "save-view",
    "saved-view",
}  # two lead on to a page of the table above, then a socket, and what test_console_repair and test_saved_views ask
OF_MACHINES = {"livez", "readyz", "metrics"}  # test_probes says who may ask
OF_BULK = {
    "start_bulk",
    "resume_bulk",
    "repeat_bulk",
    "skip_failed",
}  # test_console_bulk has them
OF_REPAIR = {
    "repair",
    "propose_repair",
    "approve_repair",
    "decline_repair",
}  # test_console_repair has them
OF_VERSIONS = {"migrate"}  # test_console_versions has it
OF_EVENTS = {"send"}  # test_console_send_event has it
OF_SECRETS = {"reveal"}  # test_secrets has it
OF_FAILURES = {"unmark_handled"}  # test_handled_failures has it
OF_VIEWS = {"save_view", "rename_view", "delete_view"}  # test_saved_views has them
OF_TOKENS = {"make_token", "revoke_token"}  # test_access_tokens has them
OF_WORKFLOWS = {
    "step-result": ["process", "run"],
    "acknowledge": ["process"],
    "nudge": ["process"],
    "cancel": ["process"],
    "unpause": ["process"],
    "redo": ["process"],
    "resume": ["process"],
    "restart": ["process"],
    "skip": ["process", "run"],
    "extend": ["process", "run"],
    "decide": ["process", "run"],
}


@pytest.fixture
def targets() -> Targets:
    """A process that has failed, and an event that came too early for it."""
    order = place_order(Destination.BOTH, "50 MWh")
    drain()
    send_event(
        ListedOnInternal(order.order_id),
        id="early",
        source="exchange",
        process_id=order.process_id,
    )
    drain()
    event = InboxEvent.objects.get(event_id="early")
    command = IssuedCommand.objects.get(type="RequestExternalCreation")
    process = ProcessInstance.objects.get(pk=order.process_id)
    failure = process.incidents.get(command=command)
    now = process.changed_at
    bulk = BulkOperation.objects.create(
        key=uuid4(),
        action="retry",
        selection="failures",
        about={"cause": failure.fingerprint},
        status="running",
        batch=1,
        shown_at=now,
        created_at=now,
        changed_at=now,
        frozen_at=now,
    )
    return {
        "process": process.pk,
        "event": event.pk,
        "command": command.pk,
        "cause": failure.fingerprint,
        "bulk": bulk.pk,
        "newest": Incident.objects.filter(fingerprint=failure.fingerprint)
        .latest("pk")
        .pk,
    }


def address(name: str, words: list[str], targets: Targets) -> str:
    given = [targets.get(word, word) for word in words]
    if name in OPERATIONS:
        return reverse(f"monitoring:{ROUTES[words[-1]]}", args=[*given, name])
    return reverse(f"monitoring:{name}", args=given)


def names(patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield str(pattern.name)
        else:
            yield from names(pattern.url_patterns)


def test_every_route_of_the_console_is_in_the_table() -> None:
    console = next(
        pattern
        for pattern in get_resolver().url_patterns
        if isinstance(pattern, URLResolver) and pattern.namespace == "monitoring"
    )

    acts = BUTTONS.keys() | OF_WORKFLOWS.keys()
    pages = PAGES.keys() | ELSEWHERE | OF_MACHINES | (acts - OPERATIONS.keys())
    known = set(names(console.url_patterns))
    for_programs = {
        name for name in known if name.startswith("api")
    }  # test_api has them
    assert known - for_programs == pages | set(ROUTES.values())
    others = (
        OF_BULK
        | OF_EVENTS
        | OF_REPAIR
        | OF_FAILURES
        | OF_VIEWS
        | OF_SECRETS
        | OF_TOKENS
        | OF_VERSIONS
    )
    assert OPERATIONS.keys() <= acts | others | OF_THE_COMMAND_LINE


OF_THE_COMMAND_LINE = {"export", "import"}
"""Actions that no page has."""


PEOPLE = ["", "stranger", "viewer", "operator", "administrator"]
Found = dict[tuple[str, str], int]


@pytest.fixture
def clients(
    stranger: User, viewing: Client, operating: Client, admin: Client
) -> dict[str, Client]:
    """A client of each kind of person, also of somebody who has not signed in."""
    alone, strange = Client(), Client()
    strange.force_login(stranger)
    return dict(zip(PEOPLE, (alone, strange, viewing, operating, admin), strict=True))


def expected(names: Iterable[str], *statuses: int) -> Found:
    """What each of the people is to be answered, in their order."""
    return {
        (name, one): status
        for name in names
        for one, status in zip(PEOPLE, statuses, strict=False)
    }


def pressed(clients: dict[str, Client], name: str, path: str, **more: str) -> Found:
    """What a button answers to each of the people; it does something only for those to whom it answers 200."""
    form = {"key": "0193a1b2c3d47e5f8a9b0c1d2e3f4a5b", "reason": "because", **more}
    found = {}
    for one, client in clients.items():
        with undone():
            answer = client.post(path, form, headers={"HX-Request": "true"})
            found[name, one] = answer.status_code
            done = OperatorAction.objects.filter(result="done").exists()
            assert done is (answer.status_code == SHOWN), (name, one)
    return found


def test_pages(targets: Targets, clients: dict[str, Client]) -> None:
    found = {
        (name, one): client.get(address(name, words, targets)).status_code
        for name, words in PAGES.items()
        for one, client in clients.items()
    }

    assert found == expected(PAGES, SIGN_IN, FORBIDDEN, SHOWN, SHOWN, SHOWN)


def test_s12_4_buttons(targets: Targets, clients: dict[str, Client]) -> None:
    more = {name: str(targets[name]) for name in ("command", "process", "newest")}
    found: Found = {}
    for name, words in BUTTONS.items():
        found |= pressed(clients, name, address(name, words, targets), **more)

    assert found == expected(BUTTONS, SIGNED_OUT, FORBIDDEN, FORBIDDEN, SHOWN, SHOWN)


@pytest.fixture
def watcher(operator: User) -> User:
    """Somebody who may do what an operator may, but not look at events."""
    operator.user_permissions.remove(Permission.objects.get(codename=LOOK_AT_EVENTS))
    return operator


LOOK_AT_EVENTS = "view_inboxevent"


@cases("headers", {}, {"HX-Request": "true"})
def test_events_are_shown_only_to_those_who_may_look_at_events(
    headers: dict[str, str], watcher: User, client: Client
) -> None:
    client.force_login(watcher)

    answer = client.get("/events/?since=1", headers=headers)

    assert answer.status_code == FORBIDDEN
    home = client.read("/")
    assert 'href="/events/' not in home
    assert 'aria-disabled="true" title="Your account may not see this"' in home


def test_the_audit_is_shown_only_to_those_who_may_look_at_it(
    targets: Targets, operator: User, operating: Client
) -> None:
    look = Permission.objects.get(codename="view_operatoraction")
    operator.user_permissions.remove(look)

    for place in ("/audit/", "/audit/export.csv", "/audit/export.jsonl"):
        assert operating.get(place).status_code == FORBIDDEN
    shown = operating.read(address("instance", ["process"], targets))
    assert 'href="/audit/' not in shown


@cases("name", "redeliver", "discard")
def test_events_are_acted_on_only_by_those_who_may_look_at_them(
    name: str, targets: Targets, watcher: User, client: Client
) -> None:
    client.force_login(watcher)
    form = {"key": "0193a1b2c3d47e5f8a9b0c1d2e3f4a5b", "reason": "because"}

    answer = client.post(address(name, ["event"], targets), form)

    assert answer.status_code == FORBIDDEN
    assert not OperatorAction.objects.exists()


@cases("name", *BUTTONS)
def test_buttons_do_nothing_on_get(
    name: str, targets: Targets, operating: Client
) -> None:
    assert operating.get(address(name, BUTTONS[name], targets)).status_code == 405


@pytest.fixture
def asking(helpdesk: None) -> Targets:
    """A workflow that waits for a decision."""
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    drain()
    run = StepRun.objects.get(instance=receipt.process_id, node="verdict")
    return {"process": receipt.process_id, "run": run.pk}


def test_buttons_of_workflows_are_for_operators(
    asking: Targets, clients: dict[str, Client]
) -> None:
    more = {"node": "classify", "to": "1", "choice": "accept", "json": "null"}
    others = {one: clients[one] for one in ("", "stranger", "viewer")}
    found: Found = {}
    for name, words in OF_WORKFLOWS.items():
        place = address(name, words, asking)
        if name == "step-result":
            found |= {(name, one): others[one].get(place).status_code for one in others}
        else:
            found |= pressed(others, name, place, minutes="5", **more)

    acts = OF_WORKFLOWS.keys() - {"step-result"}
    shown = expected(["step-result"], SIGN_IN, FORBIDDEN, SHOWN)
    assert found == shown | expected(acts, SIGNED_OUT, FORBIDDEN, FORBIDDEN)


def test_s12_4_a_viewer_sees_the_buttons_of_a_workflow_with_the_reason_why_not(
    asking: Targets, viewing: Client
) -> None:
    text = viewing.read(address("instance", ["process"], asking))

    buttons = re.findall(r'<button type="button"[^>]*data-opens[^>]*>', text)
    assert len(buttons) > 6
    assert all('aria-disabled="true"' in button for button in buttons)


def test_buttons_refuse_what_another_site_posts(
    targets: Targets, operator: User
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)

    answer = client.post(address("escalate", ["process"], targets), {"reason": "x"})

    assert answer.status_code == 403
    assert ProcessInstance.objects.get().escalation_level == 0


def test_a_viewer_sees_the_buttons_with_the_reason_why_not(
    targets: Targets, viewing: Client
) -> None:
    text = viewing.read(address("instance", ["process"], targets))

    shown = [op for op in on_processes().values() if op.on_whole]
    others = ("unpause", "acknowledge")  # of what is paused, or escalated
    refused = [op for op in shown if not op.of_workflows and op.name not in others]
    of_its_parts = [OPERATIONS["skip_command"], OPERATIONS["extend"]]
    told = text.count('aria-disabled="true" aria-describedby=')
    assert told == len(refused + of_its_parts)
    assert "Your account may not do this." in text


@cases(
    "address",
    "/processes/0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b/",
    "/definitions/nothing/",
    "/definitions/order-listing/?version=99",
    "/definitions/order-listing/picture.png",
)
def test_what_does_not_exist_is_not_found(
    address: str, targets: Targets, operating: Client
) -> None:
    assert operating.get(address).status_code == 404


def test_every_page_brings_the_strict_policy(
    targets: Targets, operating: Client
) -> None:
    for name, words in PAGES.items():
        policy = operating.get(address(name, words, targets))["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy or "sandbox" in policy
        assert "unsafe-eval" not in policy
