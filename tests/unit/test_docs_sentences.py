"""No sentence of the documentation has more than 35 words."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.services.cases import cases

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))]
MOST_WORDS = 35
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NO_PROSE = re.compile(r"^(?:\||#|!\[|Medians of ).*", re.MULTILINE)
PARAGRAPH = re.compile(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) |(?<=\S) - (?=\*)")
SENTENCE = re.compile(r"(?<=[.!?])[)*\"]*\s+(?=[A-Z0-9*`\[\"(])")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences outside of code, tables, titles, pictures and printed measurements."""
    text = re.sub(r"\]\([^)]*\)", "]", NO_PROSE.sub("\n", CODE.sub("", text)))
    for paragraph in PARAGRAPH.split(re.sub(r"`[^`]*`", "`code`", text)):
        yield from SENTENCE.split(" ".join(paragraph.split()))


@cases("page", *PAGES)
def test_no_sentence_is_long(page: Path) -> None:
    long = [one for one in sentences(page.read_text()) if len(one.split()) > MOST_WORDS]

    assert long == []
