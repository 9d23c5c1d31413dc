"""The console in Japanese."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.diagrams import drawing_of
from monitoring.diagrams.drawing import Drawing
from monitoring.diagrams.sketch import level_plan, plan
from monitoring.diagrams.words import detail_of, phrase
from orchestrator.definition.graph import Graph, Node
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import Incident
from tests.apps.patterns.ways import Broad
from tests.unit.test_diagram_workflows import every_pattern

MESSAGES = (
    Path(__file__).parents[2] / "monitoring/locale/ja/LC_MESSAGES/django.po"
).read_text()
IN_TEMPLATES = re.compile(r"""\{% translate (?:"([^"]+)"|'([^']+)')""")
TRIMMED = re.compile(
    r"\{% blocktranslate trimmed [^%]*%\}(.*?)\{% endblocktranslate %\}", re.DOTALL
)
"""Longer texts, on lines of their own, each with its plural."""

TEMPLATES = Path(__file__).parents[2] / "templates"
CONSOLE = Path(__file__).parents[2] / "monitoring"


@pytest.fixture(autouse=True)
def english_again() -> Iterator[None]:
    """The language of a request stays that of its thread."""
    with translation.override("en"):
        yield


@pytest.mark.django_db
def test_pages_speak_the_readers_language(client: Client, operator: User) -> None:
    order = place_order(Destination.BOTH, "50 MWh")
    drain()
    client.force_login(operator)

    text = client.get(
        f"/processes/{order.process_id}/", headers={"Accept-Language": "ja"}
    ).content.decode()

    assert '<html lang="ja"' in text
    for word in ("台帳", "リトライ", "エスカレーション", "現在のステップ"):
        assert word in text


def words(graph: Graph) -> str:
    """What can be read on a workflow's picture and in its tooltips."""
    found = ET.fromstring(drawing_of(graph).svg())  # noqa: S314  it is ours
    texts = ("".join(one.itertext()) for one in found.iter() if one.tag in TEXTS)
    return " | ".join(texts)


TEXTS = ("text", "title")
OWN_WORDS = {
    "start": "開始",
    "end": "終了",
    "all branches": "すべての分岐",
    "2 of 3": "3 中 2",
    "otherwise": "それ以外",
    "undone by forget": "forget で取り消し",
}


def test_a_picture_speaks_the_readers_language_and_both_are_kept() -> None:
    graph = every_pattern()

    english = words(graph)
    with translation.override("ja"):
        japanese = words(graph)

    for word, other in OWN_WORDS.items():
        assert word in english
        assert word not in japanese
        assert other in japanese
    for said in ("CorruptVideo", "is urgent (10)", "Frames", "billing"):
        assert said in japanese
    assert words(graph) == english


def test_parts_that_stand_for_several_steps_are_named_in_the_readers_language() -> None:
    graph = Broad.graph()

    with translation.override("ja"):
        folded = Drawing(graph, plan(graph)).svg()
        levels = Drawing(graph, level_plan(graph)).svg()

    assert "並行する 70 ステップ" in folded
    assert "レベル 2" in levels


@pytest.mark.django_db
def test_the_words_of_a_state_machine_are_in_the_readers_language(
    client: Client, viewer: User
) -> None:
    order = place_order(Destination.EXTERNAL, "50 MWh")
    drain()
    client.force_login(viewer)

    text = client.get(
        f"/processes/{order.process_id}/", headers={"Accept-Language": "ja"}
    ).content.decode()

    drawn = text.partition('class="picture"')[2].partition("</svg>")[0]
    assert "/ エスカレーション" in drawn
    assert "Completed: まだ可能" in drawn


def texts_of(template: str) -> set[str]:
    """The texts of a template as they stand in the list of translations."""
    short = {one or other for one, other in IN_TEMPLATES.findall(template)}
    several = "{% plural %}".join(TRIMMED.findall(template)).split("{% plural %}")
    named = (re.sub(r"\{\{ (\w+) \}\}", r"%(\1)s", text) for text in several)
    return short | {" ".join(text.split()) for text in named} - {""}


def test_every_text_of_the_templates_is_translated() -> None:
    texts = set().union(
        *(texts_of(one.read_text()) for one in TEMPLATES.rglob("*.html"))
    )

    listed = set(re.findall(r'^msgid(?:_plural)? "(.*)"$', MESSAGES, re.MULTILINE))
    assert "Nothing has failed." in texts
    assert "%(title)s, for %(number)s rows:" in texts
    assert texts - listed == set()
    assert 'msgstr ""' not in MESSAGES.partition("\n\n")[2]


ASKED = {
    **dict.fromkeys(("_", "gettext", "gettext_lazy", "gettext_noop", "noop"), (0,)),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (0, 1)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), (1,)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), (1, 2)),
}
"""The functions that translate, each with the places of its texts."""


def texts_in(source: str) -> set[str]:
    """The texts that a module has translated."""
    calls = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.Call)]
    named = [(getattr(one.func, "id", ""), one.args) for one in calls]
    given = [args[at] for name, args in named for at in ASKED.get(name, ()) if args]
    return {
        one.value
        for one in given
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


def in_japanese(text: str) -> str:
    with translation.override("ja"):
        return translation.gettext(text)


def test_every_text_of_the_consoles_code_is_translated() -> None:
    texts = set().union(*(texts_in(one.read_text()) for one in CONSOLE.rglob("*.py")))

    listed = {
        text.replace('\\"', '"').replace("\\n", "\n")
        for text in re.findall(r'^msgid(?:_plural)? "(.*)"$', MESSAGES, re.MULTILINE)
    }
    assert len(texts) > 450
    assert {one for one in texts - listed if in_japanese(one) == one} == set()


def test_what_kind_of_failure_it_is_is_translated() -> None:
    kinds = [str(kind.label) for kind in Incident.Kind]

    assert [kind for kind in kinds if in_japanese(kind) == kind] == []


@pytest.mark.parametrize(
    ("said", "japanese"),
    [
        ("after 1 hour 30 minutes", "1 時間 30 分後"),
        ("until is clear, at most 3 times", "is clear になるまで、最大 3 回"),
        ("each of pages", "pages の各要素"),
        ("OrderCreated", "OrderCreated"),
    ],
)
def test_phrases_of_ours_on_a_picture_are_translated_and_names_are_not(
    said: str, japanese: str
) -> None:
    assert phrase(said) == said
    with translation.override("ja"):
        assert phrase(said) == japanese


def test_what_stands_below_a_step_is_translated_phrase_by_phrase() -> None:
    node = Node("n", "N", "ask", detail="yes or no, at most 2 days")

    assert detail_of(node) == node.detail
    with translation.override("ja"):
        assert detail_of(node) == "yes または no, 最長 2 日"


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_text_of_an_action_is_translated(name: str) -> None:
    operation = OPERATIONS[name]
    given = [one.label for one in operation.given]
    texts = [operation.label, operation.done, operation.text, *given]
    english = [str(text) for text in texts]
    with translation.override("ja"):
        japanese = [str(text) for text in texts]

    same = [one for one, other in zip(english, japanese, strict=True) if one == other]
    assert [one for one in same if one] == []
