"""The glossary has every word of the public names that is not plain English, each with one meaning."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import orchestrator
from orchestrator import definition, models, signals
from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import (
    Blocked,
    CauseKind,
    Incident,
    Lost,
    Status,
    StepKind,
    StepStatus,
    Verdict,
)
from tests.services.words import words as listed

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
HEADS = re.findall(r"^\*\*(.+?)\*\*", GLOSSARY, re.MULTILINE)
PLAIN = frozenset(
    listed(
        """
        a action after again and any as at attempts base be by can cancelled case checking committed completed
        configuration corrupt corrupted count data decide declaration died doing done during each end engine escalate
        failed file for given handle happened have if ignore in input is issue issued it item kind left long lost made
        management migration missing model more name need never no not of on one or out over own part permanent person
        process query react reading ready received records reject repeat requested rest result retried retrying run
        running send serve serving set sign skipped sql start status step steps still storage stored taken testing that
        the then timed times to type undoing until up use value waiting was what when where who with work written
        """
    )
)
"""Words that mean here what they mean everywhere."""


def words(name: str) -> set[str]:
    """The words of a name, in lower case and the singular."""
    parts = map(str.lower, re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))
    return {singular(part) if len(part) > 3 else part for part in parts}


def singular(word: str) -> str:
    ends = "es" if word.endswith("sses") else "s"
    return word.removesuffix(ends)


TERMS = words(" ".join([*HEADS, *re.findall(r"`([^`]+)`", GLOSSARY)]))


def rooms() -> Iterator[str]:
    """The folders of the packages that a reader meets first."""
    for package in ("orchestrator", "orchestrator/engine", "orchestrator/definition"):
        for path in (ROOT / package).iterdir():
            if path.is_dir() and (path / "__init__.py").exists():
                yield path.name


NAMES: dict[str, Iterable[str]] = {
    # Django's "a" before a name says that it is asynchronous.
    "what applications call": [
        name for name in orchestrator.__all__ if name[1:] not in orchestrator.__all__
    ],
    "the language": definition.__all__,
    "the tables": models.__all__,
    "the signals": ["committed", *(field.name for field in fields(signals.Change))],
    "operators' actions": list(OPERATIONS),
    "statuses": [*Status.values, *StepStatus.values, *Verdict.values],
    "kinds": [
        *StepKind.names,
        *Incident.Kind.values,
        *Lost.values,
        *Blocked.values,
        *CauseKind.__members__,
    ],
    "folders": list(rooms()),
}


@pytest.mark.parametrize("where", NAMES)
def test_every_word_is_plain_or_in_the_glossary(where: str) -> None:
    plain = words(" ".join(PLAIN)) | PLAIN
    unknown = {name: words(name) - TERMS - plain for name in NAMES[where]}

    assert {name: left for name, left in unknown.items() if left} == {}


def test_every_term_has_one_entry() -> None:
    terms = [term.strip().lower() for head in HEADS for term in head.split(",")]
    counted = Counter(terms)

    assert [term for term, number in counted.items() if number > 1] == []
