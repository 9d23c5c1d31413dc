"""Who may open what: every route of the site against every kind of person."""

import re
from collections.abc import Iterable, Iterator
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from examples.order_listing.messages import ListedOnInternal
from orchestrator import send_event
from orchestrator.engine.operations import OPERATIONS, on_processes
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import run
from tests.apps.every_construct.desk import inquiry
from tests.conftest import of, permissions
from tests.services.client import Client
from tests.services.invariants import undone
from tests.services.placing import placed

pytestmark = [pytest.mark.django_db, pytest.mark.once]

Targets = dict[str, UUID | int | str]
SIGN_IN, SIGNED_OUT, FORBIDDEN, SHOWN = 302, 401, 403, 200


def each(names: str, *words: str) -> dict[str, list[str]]:
    """The words that the addresses of several routes are made of."""
    return {name: list(words) for name in names.split()}


PAGES = {
    **each("definitions instances saved-views tokens waits stalled decisions events"),
    **each("send-event audit failures operations begin-operation"),
    **each("definition versions compare", "order-listing"),
    **each("instance instance-picture instance-messages instance-repair", "process"),
    **each("instance-secrets instance-history instance-history-rows", "process"),
    **each("instances-export audit-export", "csv"),
    **each("picture", "order-listing", "svg"),
    **each("instance-elements", "process", "csv"),
    **each("failure-group", "cause"),
    **each("bulk-operation", "bulk"),
}
BUTTONS = {
    **each("retry skip_command escalate pause assign", "process"),
    **each("mark_handled assign_failures", "cause"),
    **each("pause_bulk cancel_bulk", "bulk"),
    **each("redeliver discard deliver", "event"),
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
FORMER = {"instance-ledger", "instance-ledger-rows"}
ELSEWHERE = {"find", "live", "change-repair", "save-view", "saved-view", *FORMER}
"""Four lead on to a page of the table above; then a socket, and what test_console_repair and test_saved_views ask."""
OF_MACHINES = {"livez", "readyz", "metrics"}  # test_probes says who may ask
ASKED_BY = {
    "test_console_bulk": "start_bulk resume_bulk repeat_bulk skip_failed",
    "test_console_repair": "repair propose_repair approve_repair decline_repair",
    "test_console_versions": "migrate",
    "test_console_send_event": "send",
    "test_secrets": "reveal",
    "test_handled_failures": "unmark_handled",
    "test_saved_views": "save_view rename_view delete_view",
    "test_access_tokens": "make_token revoke_token",
    "nobody, for no page has them": "export import",
}
"""The other actions, by who asks whether somebody may them."""
OF_WORKFLOWS = {
    **each("acknowledge nudge cancel unpause redo resume restart", "process"),
    **each("step-result skip extend decide", "process", "run"),
}


@pytest.fixture
def targets() -> Targets:
    """A process that has failed, and an event that came too early for it."""
    process = placed()
    early = ListedOnInternal(process.correlation_key)
    send_event(early, id="early", source="exchange", process_id=process.pk)
    run()
    command = IssuedCommand.objects.get(type="RequestExternalCreation")
    failure = process.incidents.get(command=command)
    times = ("shown_at", "created_at", "changed_at", "frozen_at")
    bulk = BulkOperation.objects.create(
        key=uuid4(),
        action="retry",
        selection="failures",
        about={"cause": failure.fingerprint},
        status="running",
        batch=1,
        **dict.fromkeys(times, process.changed_at),
    )
    return {
        "process": process.pk,
        "event": InboxEvent.objects.get(event_id="early").pk,
        "command": command.pk,
        "cause": failure.fingerprint,
        "bulk": bulk.pk,
        "newest": failure.pk,
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
    for_programs = {name for name in known if name.startswith("api")}  # of test_api
    assert known - for_programs == pages | set(ROUTES.values())
    others = each(" ".join(ASKED_BY.values())).keys()
    assert OPERATIONS.keys() <= acts | others


PEOPLE = ["", "stranger", "viewer", "operator", "administrator"]
Found = dict[tuple[str, str], int]


@pytest.fixture
def clients(
    stranger: User, viewing: Client, operating: Client, admin: Client
) -> dict[str, Client]:
    """A client of each kind of person, also of somebody who has not signed in."""
    people = (Client(), of(stranger), viewing, operating, admin)
    return dict(zip(PEOPLE, people, strict=True))


def expected(names: Iterable[str], *statuses: int) -> Found:
    """What each of the people is to be answered, in their order."""
    return {
        (name, one): status
        for name in names
        for one, status in zip(PEOPLE, statuses, strict=False)
    }


FORM = {"key": "0193a1b2c3d47e5f8a9b0c1d2e3f4a5b", "reason": "because"}


def pressed(clients: dict[str, Client], name: str, path: str, **more: str) -> Found:
    """What a button answers to each of the people; it does something only for those to whom it answers 200."""
    found = {}
    for one, client in clients.items():
        with undone():
            answer = client.post(path, FORM | more, headers={"HX-Request": "true"})
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
def watching(operator: User) -> Client:
    """A client of somebody who may do what an operator may, but not look at events."""
    operator.user_permissions.remove(permissions()["view_inboxevent"])
    return of(operator)


def test_events_are_shown_to_and_acted_on_by_those_alone_who_may_look_at_them(
    targets: Targets, watching: Client
) -> None:
    for headers in ({}, {"HX-Request": "true"}):
        watching.read("/events/?since=1", status=FORBIDDEN, headers=headers)
    for name in ("redeliver", "discard"):
        answer = watching.post(address(name, ["event"], targets), FORM)
        assert answer.status_code == FORBIDDEN
    assert not OperatorAction.objects.exists()
    home = watching.read("/")
    assert 'href="/events/' not in home
    assert 'aria-disabled="true" title="Your account may not see this"' in home


def test_the_audit_is_shown_only_to_those_who_may_look_at_it(
    targets: Targets, operator: User, operating: Client
) -> None:
    operator.user_permissions.remove(permissions()["view_operatoraction"])

    for place in ("/audit/", "/audit/export.csv", "/audit/export.jsonl"):
        operating.read(place, status=FORBIDDEN)
    shown = operating.read(address("instance", ["process"], targets))
    assert 'href="/audit/' not in shown


def test_buttons_do_nothing_on_get(targets: Targets, operating: Client) -> None:
    for name, words in BUTTONS.items():
        operating.read(address(name, words, targets), status=405)


@pytest.fixture
def asking(helpdesk: None) -> Targets:
    """A workflow that waits for a decision."""
    run = StepRun.objects.get(instance=inquiry(), node="verdict")
    return {"process": run.instance_id, "run": run.pk}


def test_buttons_of_workflows(asking: Targets, clients: dict[str, Client]) -> None:
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


def test_buttons_refuse_what_others_post(targets: Targets, operator: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator)

    answer = client.post(address("escalate", ["process"], targets), {"reason": "x"})

    assert answer.status_code == 403
    assert ProcessInstance.objects.get().escalation_level == 0


def test_s12_4_a_viewer_sees_the_buttons_with_the_reason_why_none_works(
    targets: Targets, asking: Targets, viewing: Client
) -> None:
    order, workflow = (
        viewing.read(address("instance", ["process"], one)) for one in (targets, asking)
    )

    shown = [op for op in on_processes().values() if op.on_whole]
    others = ("unpause", "acknowledge")  # of what is paused, or escalated
    refused = [op for op in shown if not op.of_workflows and op.name not in others]
    of_its_parts = [OPERATIONS["skip_command"], OPERATIONS["extend"]]
    told = order.count('aria-disabled="true" aria-describedby=')
    assert told == len(refused + of_its_parts)
    assert "Your account may not do this." in order
    buttons = re.findall(r'<button type="button"[^>]*data-opens[^>]*>', workflow)
    assert len(buttons) > 6
    assert all('aria-disabled="true"' in button for button in buttons)


def test_what_does_not_exist_is_not_found(targets: Targets, operating: Client) -> None:
    for place in (
        "/processes/0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b/",
        "/definitions/nothing/",
        "/definitions/order-listing/?version=99",
        "/definitions/order-listing/picture.png",
    ):
        operating.read(place, status=404)


def test_every_page_has_the_strict_policy(targets: Targets, operating: Client) -> None:
    for name, words in PAGES.items():
        policy = operating.get(address(name, words, targets))["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy or "sandbox" in policy
        assert "unsafe-eval" not in policy
