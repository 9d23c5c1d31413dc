"""Calls that read: parameters, pages, one process in full, and what is told to whom; calls that create."""

from collections.abc import Callable
from itertools import product
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.api.parameters import MOST, OfProcesses
from monitoring.api.wrong_tokens import wrong_tokens
from monitoring.lists.processes.filters import Filters
from orchestrator import start_process
from orchestrator.definition.secrets import MASK
from orchestrator.engine.operations import make_token, save_view
from orchestrator.models import InboxEvent, ProcessInstance
from orchestrator.testing import run
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Lattice
from tests.apps.kept_secret.fixtures import Filled, filled, secretive
from tests.conftest import of, person
from tests.console.test_api import Program
from tests.console.test_secrets import content, told
from tests.console.test_seen_by_definition import let_see
from tests.services.asking import asked
from tests.services.bulk import begun, frozen
from tests.services.cases import words
from tests.services.forms_of_actions import failed_order
from tests.services.sizes import FULL

__all__ = ["filled", "helpdesk", "secretive"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("world")]

ORDERS = "order-listing"
"""The definition that the world has most processes of."""

HOSTILE = ("\0", "a\0b", "\ud800", "9" * 40, "-1", "' OR 1=1 --", "\u202e", "x" * 5_000)


@pytest.fixture(scope="module")
def world(module_db: None, helpdesk: None) -> dict[str, Any]:
    """Make orders of which one has failed, and workflows of which two have ended; return their ids."""
    order = failed_order()
    cause, event = order.incidents.get().fingerprint, InboxEvent.objects.latest("pk")
    for _ in range(4):
        place_order(Destination.INTERNAL, "1 MWh")
    wide = [Lattice.Input(1, width) for width in (1, 2)]
    one, two = (start_process(Lattice, given).process_id for given in wide)
    run()
    chief = User.objects.create_superuser("chief")
    for name in ("a", "b", "c"):
        save_view(name, {"status": "live"}, True, request=asked(actor=chief))
    about = {"definition": ORDERS}
    first, *_ = [begun(chief, about, 5, action="escalate") for _ in range(3)]
    ids = {"order": order.pk, "cause": cause, "event": event.pk, "one": one}
    return {**ids, "two": two, "operation": frozen(first).pk}


@pytest.fixture
def program(operator: User) -> Program:
    return Program(operator)


# Parameters


WRONG = (
    ("processes/", "stauts=failed", "status"),
    ("processes/", "status=faild", "failed"),
    ("processes/", "status=Failed", "failed"),
    ("processes/", "doing=actve", "active"),
    ("processes/", "sort=oldst", "oldest"),
    ("processes/", "version=two", "number"),
    ("processes/", "before=7", "next"),
    ("processes/{order}/", "befor=7", "before"),
    ("processes/{order}/", "before=x", "next"),
    ("events/", "typ=OrderCreated", "type"),
    ("events/", "verdict=unroutd", "unrouted"),
    ("events/", "tab=parkd", "parked"),
    ("events/", "from=yesterday", "yesterday"),
    ("events/", "before=-1", "next"),
    ("events/{event}/", "verdict=parked", "no parameters"),
    ("failures/", "ordr=newest", "order"),
    ("failures/", "order=bigest", "largest"),
    ("failures/", "show=handled", "Known are"),
    ("failures/{cause}/", "befor=1", "before"),
    ("operations/", "goingon=1", "going_on"),
    ("operations/", "going_on=2", "1 or 0"),
    ("operations/", "before=1", "next"),
    ("operations/{operation}/", "verdct=done", "verdict"),
    ("operations/{operation}/", "verdict=dne", "done"),
    ("operations/{operation}/", "after=" + "9" * 40, "next"),
    ("views/", "page=2", "no parameters"),
    ("tokens/", "limt=2", "limit"),
    ("", "action=retry", "no parameters"),
)
"""What each address is asked, and what is meant: told at the parameter's name, a span of days at none."""

LISTS = dict.fromkeys(path for path, *_ in WRONG)


LIMITS = {
    **{f"limit={n}": "1 to 200" for n in (0, 201, -1, "x", 10**40, 1.5)},
    "limit=1&limit=2": "twice",
}
"""What each list that has pages refuses, and what is meant."""


def test_what_is_asked_and_is_not_known_is_refused_with_what_is_meant(
    program: Program, world: dict[str, Any]
) -> None:
    wrong = []
    for path in LISTS:
        address = f"/api/{path.format(**world)}"
        assert program.get(address).status_code == 200, address
        assert program.get(f"{address}?").status_code == 200
        own = {query: meant for at, query, meant in WRONG if at == path}
        limits = {} if "no parameters" in own.values() else LIMITS
        for query, meant in (own | limits).items():
            name = query.partition("=")[0].replace("from", "")
            answer = program.get(f"{address}?{query}")
            told = answer.json()
            errors = told.get("errors", {"": [told.get("said", "")]})
            found = meant in str(errors.get(name))
            if (answer.status_code, told["error"], found) != (422, "invalid", True):
                wrong.append((address, query, answer.status_code, told))
    assert wrong == []
    assert set(OfProcesses.model_fields) == {*Filters.names(), "before", "limit"}


def test_nothing_hostile_that_is_asked_is_an_error_of_ours(
    program: Program, world: dict[str, Any]
) -> None:
    names = {*OfProcesses.model_fields, "type", "key", "verdict", "tab", "order", "no"}
    broken = []
    for path in LISTS:
        address = f"/api/{path.format(**world)}"
        for number, text in enumerate(HOSTILE):
            value = quote(text, errors="surrogatepass")
            every = 1 if FULL else 5
            for name in [*sorted(names), value][number % every :: every]:
                answer = program.get(f"{address}?{name}={value}")
                if answer.status_code not in (200, 422):
                    broken.append((address, name, text[:20], answer.status_code))
    for accept in ("application/problem+json;q*=x'y'z", "\x7f", "a/b;q=x", ",", "*/*"):
        answer = program.get("/api/processes/?no=1", headers={"accept": accept})
        assert answer["Content-Type"] == "application/json", accept
    assert broken == []


# Pages


PAGED = {
    "processes/": ("processes", "process"),
    "processes/?sort=oldest": ("processes", "process"),
    "processes/{order}/": ("history", "revision"),
    "events/?type=OrderCreated": ("events", "event"),
    "failures/": ("failures", "newest"),
    "failures/{cause}/": ("failures", "failure"),
    "operations/": ("operations", "operation"),
    "operations/?going_on=1": ("operations", "operation"),
    "operations/{operation}/": ("items", "process"),
    "tokens/": ("tokens", "token"),
}
"""Of each list the name of its rows, and of their keys."""


def test_every_list_is_read_a_page_at_a_time_to_its_end(
    program: Program, operator: User, world: dict[str, Any]
) -> None:
    for number in range(4):
        make_token(f"t{number}", 1, request=asked(actor=operator))
    several = 0
    for path, (name, key) in PAGED.items():
        address = f"/api/{path.format(**world)}"
        joined = "&" if "?" in address else "?"
        whole = program.told(f"{address}{joined}limit={MOST}")
        assert whole["next"] is None, path
        for limit in (1, 2):
            found, following = list[Any](), f"{address}{joined}limit={limit}"
            while following:
                page = program.told(following)
                assert len(page[name]) <= limit
                found += page[name]
                following = page["next"]
            assert [row[key] for row in found] == [row[key] for row in whole[name]]
        several += len(whole[name]) > 1
    assert several >= 7


# One process


def test_one_process_is_told_with_its_data_its_result_and_its_history(
    program: Program, world: dict[str, Any]
) -> None:
    order = ProcessInstance.objects.get(pk=world["order"])
    told, one, two = (
        program.told(f"/api/processes/{world[name]}/")
        for name in ("order", "one", "two")
    )

    assert (told["data"], told["result"]) == (order.data, None)
    assert (one["result"], two["result"]) == (1, {"work_0_0": 1, "work_0_1": 1})
    history = told["history"]
    assert history[0]["revision"] == order.revision
    event = history[-1]["event"]
    assert (event["type"], history[-1]["revision"]) == ("OrderCreated", 1)
    assert event["body"]["destination"] == "both"
    commands = {one["type"] for row in history for one in row["commands"]}
    assert "RequestExternalCreation" in commands
    assert "no exchange is configured" in str(history)


def told_of(pk: object, program: Program, reader: Client, *, order: bool) -> str:
    """What a program is told of a process where a page tells the same: "data", "none" of it, or "403"."""
    answer = program.get(f"/api/processes/{pk}/")
    assert answer.status_code == reader.get(f"/processes/{pk}/").status_code
    if answer.status_code != 200:
        return str(answer.status_code)
    told, text = answer.json(), answer.content.decode()
    with_data = told["data"] is not None
    values = [told["data"], *(row["data"] for row in told["history"])]
    values += [row["event"] and row["event"]["body"] for row in told["history"]]
    assert any(values) == with_data
    ids = {row["event"]["id"] for row in told["history"] if row["event"]}
    assert ids or not order
    assert with_data or ids <= {None}  # no id for who sees neither events nor data
    assert ('"destination"' in text) == (with_data and order)
    assert ("Traceback" in text) <= with_data
    return "data" if with_data else "none"


def test_what_is_told_of_a_process_is_what_its_reader_may_see_on_its_page(
    world: dict[str, Any],
) -> None:
    use, view = "use_accesstoken", "view_processinstance"
    data = "view_data_processinstance"
    people: list[tuple[Callable[[], User], str, str]] = [
        (lambda: person("all", use, view, data), "data", "data"),
        (lambda: person("no-data", use, view), "none", "none"),
        (lambda: let_see(person("orders", use), ORDERS, view), "none", "403"),
        (lambda: let_see(person("more", use, view), ORDERS, data), "data", "none"),
        (lambda: person("nothing", use), "403", "403"),
    ]
    for make, of_order, of_another in people:
        user = make()
        who = Program(user), of(user)
        assert told_of(world["order"], *who, order=True) == of_order, user
        assert told_of(world["one"], *who, order=False) == of_another, user


OF_ONE = words(
    """processes/?definition=order-listing failures/?definition=order-listing
    failures/{cause}/ operations/{operation}/ views/ tokens/ openapi.json docs/
    operations/begin/?definition=order-listing"""
)
OF_OTHERS = words(
    """processes/ processes/?definition=helpdesk-lattice failures/ failures/none/
    operations/ operations/begin/?status=failed events/ events/{event}/ nothing/"""
)


def test_a_reader_of_one_definition_is_told_of_no_other(world: dict[str, Any]) -> None:
    who = person("ann", "use_accesstoken")
    ann = Program(let_see(who, ORDERS, "view_processinstance"))
    expected = {**dict.fromkeys(["", *OF_ONE], 200), **dict.fromkeys(OF_OTHERS, 403)}

    answers = {path: ann.get(f"/api/{path.format(**world)}") for path in expected}

    assert {path: one.status_code for path, one in answers.items()} == expected
    assert answers["views/"].json() == {"views": []}
    for path, answer in answers.items():
        assert str(world["one"]) not in answer.content.decode(), path
    for pk in (world["one"], uuid4()):
        assert ann.say(f"/api/processes/{pk}/escalate/").status_code in (403, 404)


@pytest.mark.usefixtures("secretive")
def test_no_secret_is_told(filled: Filled, administrator: User) -> None:
    program = Program(administrator)
    for path in ("processes/?", "events/?tab=all&", "failures/?"):
        assert told(content(program.get(f"/api/{path}limit=200"))) == []
    for pk in filled:
        text = content(program.get(f"/api/processes/{pk}/"))
        assert told(text) == []
        assert MASK in text


# Calls that create, and refusals


def test_what_is_created_in_a_list_is_answered_by_201_or_202(program: Program) -> None:
    typed = "/api/events/?type=ListedOnInternal"
    event = {"key": str(uuid4()), "event_id": "n-1", "field-order_id": "A-1"}
    sent, again = program.say(typed, **event), program.say(typed, **event)
    assert (sent.status_code, again.status_code) == (202, 202)
    assert sent.json()["receipt"] == again.json()["receipt"]
    assert program.told(sent["Location"])["id"] == "n-1"
    assert program.say(typed, event_id="").status_code == 422

    selected = f"status=failed&definition={ORDERS}&action=retry"
    shown = program.told(f"/api/operations/begin/?{selected}")
    given = {name: shown[name] for name in ("shown", "shown_at", "exact", "limits")}
    begun = program.say(f"/api/operations/?{selected}", **given)
    assert begun.status_code == 202
    assert program.told(begun["Location"])["action"] == "retry"

    saved = program.say("/api/views/", name="mine", query="status=failed", reason=...)
    assert saved.status_code == 201
    assert "mine" in [row["name"] for row in program.told("/api/views/")["views"]]


def test_a_refusal_is_a_problem_document_for_who_asks_for_one(
    program: Program, world: dict[str, Any]
) -> None:
    address = f"/api/processes/{world['order']}/unpause/"
    asks = {"accept": "application/json;q=0.5, application/problem+json"}
    said = {"key": str(uuid4()), "reason": "x"}
    refused = program.post(address, said, headers=asks)
    invalid = program.get("/api/processes/?stauts=failed", headers=asks)
    missing = Client().get("/api/", headers=asks)

    now = program.told(f"/api/processes/{world['order']}/")
    stands = {name: now[name] for name in ("process", "status", "step", "revision")}
    kind = {"type": "about:blank", "title": "Conflict", "status": 409}
    why = {"detail": "It is not paused", "error": "refused", "code": "it_is_not_paused"}
    about = {"instance": address, "process": stands}
    assert refused.json() == {**kind, **why, **about}
    assert invalid.json()["errors"].keys() == {"stauts"}
    assert missing["WWW-Authenticate"]
    for answer in (refused, invalid, missing):
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code
    plain = program.get("/api/processes/?stauts=failed")
    assert plain["Content-Type"] == "application/json"
    assert plain.json()["done"] is False


METHODS = words("GET HEAD POST PUT DELETE OPTIONS TRACE BREW")
ALLOWED = {
    **dict.fromkeys(["", "processes/", "processes/{order}/"], "GET, HEAD"),
    **dict.fromkeys(words("processes/{order}/escalate/ events/send/"), "POST"),
    **dict.fromkeys(words("events/ operations/begin/ views/"), "GET, HEAD, POST"),
}


def test_a_method_that_an_address_does_not_have_is_answered_with_those_it_has(
    program: Program, world: dict[str, Any]
) -> None:
    for (path, allow), method in product(ALLOWED.items(), METHODS):
        if method not in allow.split(", "):
            wrong_tokens.forget()
            address = f"/api/{path.format(**world)}"
            answer = program.generic(method, address)
            assert (answer.status_code, answer["Allow"]) == (405, allow), (method, path)
            assert Client().generic(method, address).status_code == 401
    assert program.head("/api/processes/?no=1").status_code == 422
