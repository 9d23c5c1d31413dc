"""Refusals, incidents and errors of ours: in the reader's language, with steps and statuses by their names."""

import ast
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

import orchestrator.engine
from examples.order_listing.messages import Destination, ListedOnExternal
from examples.order_listing.orders import place_order
from monitoring.spoken import FORMS, PLACE, SENTENCES, spoken
from orchestrator import send_event
from orchestrator.engine.drain import drain
from orchestrator.models import Incident, OperatorAction, ProcessInstance
from orchestrator.testing import pass_time

ENGINE = Path(orchestrator.engine.__file__).parent

RAISED = (
    "OperationRefused",
    "StaleRevision",
    "Permanent",
    "WorkerDied",
    "TimedOut",
    "Interrupted",
    "HandlerMissing",
    "ExitRefused",
    "StoodIdle",
    "LimitReached",
    "ChildCancelled",
)
"""What the engine raises with a text that people are shown."""

TOLD = ("why_not", "not_open", "address")
"""Functions that return such texts."""

NOT_ON_PAGES = ("transfer",)
"""What only the command line says: export and import."""

JAPANESE = {"Accept-Language": "ja"}


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    """The language of a request stays that of its thread."""
    with translation.override("en"):
        yield


def text_of(node: ast.expr) -> str:
    """The text that an expression makes, with the same word in each of its places; "" if it makes none by itself."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(
                str(part.value) if isinstance(part, ast.Constant) else "X"
                for part in parts
            )
    return ""


def ways(node: ast.expr) -> list[ast.expr]:
    """What an expression comes to: either side of a condition."""
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]


def made_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in RAISED:
                yield text_of(first)
            case ast.FunctionDef(name=name) if name in TOLD:
                for part in ast.walk(node):
                    if isinstance(part, ast.Return) and part.value is not None:
                        yield from map(text_of, ways(part.value))
            case ast.Assign(targets=[ast.Name(id="reason")], value=value):
                yield from map(text_of, ways(value))


def test_every_text_that_the_engine_shows_people_is_known() -> None:
    texts = {
        (path.name, text)
        for path in ENGINE.rglob("*.py")
        if path.parent.name not in NOT_ON_PAGES
        for text in made_in(path)
        if " " in text
    }

    forms = [PLACE.sub("X", sentence) for sentence in SENTENCES]
    unknown = {
        (name, text)
        for name, text in texts
        if not any(form.pattern.fullmatch(text) for form in FORMS)
        and not any(plain.endswith(text.removeprefix("X")) for plain in forms)
    }
    assert len(texts) > 60
    assert unknown == set()


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_is_translated_with_what_it_says(sentence: str) -> None:
    names = PLACE.findall(sentence)
    text = sentence % {name: f"<{name}>" for name in names}

    assert spoken(text) == text
    with translation.override("ja"):
        japanese = spoken(text)

    assert japanese != text
    assert sorted(re.findall(r"<\w+>", japanese)) == sorted(f"<{n}>" for n in names)


def test_a_text_within_a_text_is_translated_too() -> None:
    with translation.override("ja"):
        text = spoken(
            "OperationRefused: no process takes Paid: there is no delivery with the key 'A'"
        )

    assert (
        text
        == "OperationRefused: Paid を受け取るプロセスがありません: キー 'A' の delivery はありません"
    )


@pytest.mark.parametrize("text", ["", "ValueError: no", "100% of %(step)s", "{}"])
def test_what_the_application_says_stays_as_it_is(text: str) -> None:
    with translation.override("ja"):
        assert spoken(text) == text


# On the pages


@pytest.fixture
def early(db: None) -> ProcessInstance:
    """An order that waits for its creation, and got an event of a later step beyond all patience."""
    order = place_order(Destination.EXTERNAL, "50 MWh")
    drain()
    send_event(
        ListedOnExternal(order.order_id),
        id="early",
        source="exchange",
        process_id=order.process_id,
    )
    drain()
    pass_time(timedelta(seconds=70))
    drain()
    return ProcessInstance.objects.get(pk=order.process_id)


def test_an_incident_names_the_step_and_speaks_the_readers_language(
    early: ProcessInstance, client: Client, operator: User
) -> None:
    stored = Incident.objects.get(kind="unexpected_event").message
    assert stored.endswith("is not expected in step AwaitingExternalCreation")
    client.force_login(operator)

    english = client.get("/failures/").content.decode()
    japanese = client.get("/failures/", headers=JAPANESE).content.decode()

    said = "ListedOnExternal is not expected in step Awaiting external creation"
    assert said in english
    assert "AwaitingExternalCreation" not in english
    assert "ListedOnExternal はステップ Awaiting external creation では" in japanese
    events = client.get("/events/", headers=JAPANESE).content.decode()
    assert "では想定されていません" in events


def test_a_refusal_is_in_the_language_of_whoever_presses_and_kept_in_english(
    early: ProcessInstance, client: Client, operator: User
) -> None:
    client.force_login(operator)
    form = {"key": uuid4().hex, "revision": 0, "reason": "because"}
    address = f"/processes/{early.pk}/escalate/"

    answer = client.post(address, form, headers={**JAPANESE, "HX-Request": "true"})

    assert answer.status_code == 409
    assert "ページの読み込み後にプロセスが変わりました" in answer.content.decode()
    [kept] = OperatorAction.objects.values_list("detail", flat=True)
    assert kept.startswith("The process has changed since the page was loaded")


def test_why_a_button_cannot_be_pressed_is_in_the_readers_language(
    client: Client, operator: User, db: None
) -> None:
    order = place_order(Destination.INTERNAL, "50 MWh")
    drain()
    client.force_login(operator)

    page = client.get(f"/processes/{order.process_id}/", headers=JAPANESE)

    assert "プロセスは終了しています" in page.content.decode()
    assert "The process has ended" not in page.content.decode()
