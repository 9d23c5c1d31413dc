"""The console in Japanese."""

import ast
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from django.utils import timezone, translation

from examples.order_listing.messages import Destination
from monitoring.diagrams import drawing_of
from monitoring.diagrams.drawing import Drawing
from monitoring.diagrams.sketch import best_sketch, level_sketch
from monitoring.diagrams.words import detail_of, phrase
from orchestrator.definition.graph import Graph, Node
from orchestrator.engine.change.workflows import retrying
from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import Incident
from tests.apps.patterns.ways import Broad
from tests.services.client import Client
from tests.services.placing import placed
from tests.services.reading import between
from tests.unit.test_diagram_workflows import every_pattern

MESSAGES = (
    Path(__file__).parents[2] / "monitoring/locale/ja/LC_MESSAGES/django.po"
).read_text()
LISTED = set(re.findall(r'^msgid(?:_plural)? "(.*)"$', MESSAGES, re.MULTILINE))
IN_TEMPLATES = re.compile(r"""\{% translate (?:"([^"]+)"|'([^']+)')""")
TRIMMED = re.compile(
    r"\{% blocktranslate trimmed [^%]*%\}(.*?)\{% endblocktranslate %\}", re.DOTALL
)
"""Longer texts, on lines of their own, each with its plural."""

ROOT = Path(__file__).parents[2]
IN_JAPANESE = {"Accept-Language": "ja"}


@pytest.mark.django_db
def test_pages_speak_the_readers_language(viewing: Client) -> None:
    order = placed(Destination.EXTERNAL)

    text = viewing.read(f"/processes/{order.pk}/", headers=IN_JAPANESE)

    assert '<html lang="ja"' in text
    for word in ("履歴", "リトライ", "エスカレーション", "現在のステップ"):
        assert word in text
    drawn = between(text, 'class="picture"', "</svg>")
    assert "/ エスカレーション" in drawn
    assert "Completed: まだ可能" in drawn


def words(graph: Graph) -> str:
    """What can be read on a workflow's picture and in its tooltips."""
    found = ET.fromstring(drawing_of(graph).svg())  # noqa: S314  it is ours
    read = [one for one in found.iter() if one.tag in ("text", "title")]
    return " | ".join("".join(one.itertext()) for one in read)


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
        folded = Drawing(graph, best_sketch(graph)).svg()
        levels = Drawing(graph, level_sketch(graph)).svg()

    assert "並行する 70 ステップ" in folded
    assert "レベル 2" in levels


def texts_of(template: str) -> set[str]:
    """The texts of a template as they stand in the list of translations."""
    short = {one or other for one, other in IN_TEMPLATES.findall(template)}
    several = "{% plural %}".join(TRIMMED.findall(template)).split("{% plural %}")
    named = (re.sub(r"\{\{ (\w+) \}\}", r"%(\1)s", text) for text in several)
    return short | {" ".join(text.split()) for text in named} - {""}


def test_every_text_of_the_templates_is_translated() -> None:
    templates = (ROOT / "templates").rglob("*.html")
    texts = set().union(*(texts_of(one.read_text()) for one in templates))

    assert "Nothing has failed." in texts
    assert "%(title)s, for %(number)s rows:" in texts
    assert texts - LISTED == set()
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
    code = (ROOT / "monitoring").rglob("*.py")
    texts = set().union(*(texts_in(one.read_text()) for one in code))

    listed = {one.replace('\\"', '"').replace("\\n", "\n") for one in LISTED}
    assert len(texts) > 450
    assert {one for one in texts - listed if in_japanese(one) == one} == set()


def test_what_kind_of_failure_it_is_is_translated() -> None:
    kinds = [str(kind.label) for kind in Incident.Kind]

    assert [kind for kind in kinds if in_japanese(kind) == kind] == []


@pytest.mark.django_db
def test_what_resolved_a_failure_is_translated(viewing: Client) -> None:
    Incident.objects.create(
        kind=Incident.Kind.STEP_FAILED,
        message="no",
        opened_at=timezone.now(),
        resolved_at=timezone.now(),
        resolution=retrying.BY,
    )

    text = viewing.read("/failures/?show=resolved", headers=IN_JAPANESE)

    assert "オペレーターがリトライしました" in text


def test_phrases_of_ours_on_a_picture_are_translated_and_names_are_not() -> None:
    phrases = {
        "after 1 hour 30 minutes": "1 時間 30 分後",
        "until is clear, at most 3 times": "is clear になるまで、最大 3 回",
        "each of pages": "pages の各要素",
        "OrderCreated": "OrderCreated",
    }
    node = Node("n", "N", "ask", detail="yes or no, at most 2 days")

    assert [phrase(said) for said in phrases] == list(phrases)
    assert detail_of(node) == node.detail
    with translation.override("ja"):
        assert {said: phrase(said) for said in phrases} == phrases
        assert detail_of(node) == "yes または no, 最長 2 日"


def test_every_text_of_an_action_is_translated() -> None:
    left = list[str]()
    for one in OPERATIONS.values():
        texts = [one.label, one.done, one.text, *(given.label for given in one.given)]
        english = [str(text) for text in texts]
        with translation.override("ja"):
            left += [str(text) for text in texts if text and str(text) in english]

    assert left == []
