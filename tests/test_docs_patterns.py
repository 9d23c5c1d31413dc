"""The pages on workflows are true: each class printed there runs, and its picture shows its steps.

The classes are the source of the pictures. To draw them anew: DRAW_PATTERNS=1 pytest tests/test_docs_patterns.py
"""

import html
import os
import re
from pathlib import Path
from typing import Any

import pytest

from monitoring.diagrams import Drawing
from orchestrator import registry
from orchestrator.definition import Workflow
from orchestrator.engine.storage import definitions
from orchestrator.models import ProcessInstance
from orchestrator.testing import run, started
from tests.test_docs import MANUAL, registered, run_blocks

__all__ = ["registered"]  # a fixture

PATTERNS = MANUAL / "patterns.md"
IMAGE = re.compile(r"!\[[^\]]+\]\((images/\S+\.svg)\)")
NAMES = [Path(found).stem for found in IMAGE.findall(PATTERNS.read_text())]
STANDS = {"wait-and-ask": "waiting", "sleep": "waiting"}  # all others run to their end
"""Where a pattern's process stands when nobody helps it."""


@pytest.fixture
def patterns(registered: None) -> dict[str, type[Workflow]]:
    """The workflows of the page, by name."""
    return {
        found.name: found
        for found in run_blocks(PATTERNS).values()
        if isinstance(found, type) and issubclass(found, Workflow) and found.name
    }


def shown(definition: type[Workflow], path: Path) -> str:
    """Return the words of a definition's picture, drawn anew if that is asked for."""
    if os.environ.get("DRAW_PATTERNS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{Drawing(definition.graph()).standalone()}\n")
    texts = re.findall(r"<text[^>]*>(.*?)</text>", path.read_text(), re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", text) for text in texts))


def unseen(definition: type[Workflow], path: Path) -> list[str]:
    """Return the labels of steps that the picture does not show."""
    words = " ".join(shown(definition, path).split())
    return [node.label for node in definition.graph().nodes if node.label not in words]


@pytest.mark.parametrize("section", PATTERNS.read_text().split("\n## ")[1:])
def test_every_section_has_a_workflow_and_its_picture(section: str) -> None:
    assert re.search(r"^class \w+\(Workflow\):", section, re.MULTILINE)
    assert len(IMAGE.findall(section)) == 1


@pytest.mark.parametrize("name", NAMES)
def test_pictures_are_whole(patterns: dict[str, type[Workflow]], name: str) -> None:
    picture = MANUAL / "images" / "patterns" / f"{name}.svg"

    assert unseen(patterns[name], picture) == []


def test_there_is_no_picture_without_a_pattern() -> None:
    pictures = (MANUAL / "images" / "patterns").glob("*.svg")

    assert sorted(path.stem for path in pictures) == sorted(NAMES)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", NAMES)
def test_the_pattern_runs(patterns: dict[str, type[Workflow]], name: str) -> None:
    definitions.forget_definitions()
    for definition in patterns.values():
        registry.register_definition(definition)

    found = patterns[name]

    assert started(found, found.Input()).status == STANDS.get(name, "completed")


# The tutorial


@pytest.fixture
def tutorial(
    registered: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The names of the tutorial, in a folder that has letters."""
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "eva.txt").write_text("I want a refund")
    (tmp_path / "letters" / "torn.txt").write_bytes(b"\xff\xfe\xff")
    monkeypatch.chdir(tmp_path)
    names = run_blocks(MANUAL / "tutorial.md")
    definitions.forget_definitions()
    registry.register_definition(names["Inquiry"])
    return names


def test_the_picture_of_the_tutorial_shows_each_step(tutorial: dict[str, Any]) -> None:
    assert unseen(tutorial["Inquiry"], MANUAL / "images" / "tutorial.svg") == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("text", "letter", "status", "step"),
    [
        ("Where are you?", "", "completed", ("reply", "done")),
        ("The office is on fire", "", "completed", ("escalate", "done")),
        ("Hello", "eva.txt", "waiting", ("agent_decides", "waiting")),
        ("Hello", "torn.txt", "completed", ("note_unreadable", "done")),
        ("", "", "cancelled", ("classify", "failed")),
        ("Hello", "lost.txt", "retrying", ("read_letter", "retrying")),
    ],
)
def test_the_inquiry_of_the_tutorial_goes_its_way(
    tutorial: dict[str, Any], text: str, letter: str, status: str, step: tuple[str, str]
) -> None:
    receipt = tutorial["take_in"]("T-1", "Mia", text, letter)
    run()

    process = ProcessInstance.objects.get(pk=receipt.process_id)
    assert process.status == status
    assert step in process.step_runs.values_list("node", "status")
