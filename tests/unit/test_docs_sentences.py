"""No sentence of the documentation has more than 35 words, in tables either."""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.services.cases import cases

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/*.md"))]
MOST_WORDS = 35
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NO_PROSE = re.compile(r"^(?:#|!\[|Medians of ).*", re.MULTILINE)
ROW = re.compile(r"^\|.*", re.MULTILINE)
PARAGRAPH = re.compile(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) |(?<=\S) - (?=\*)")
SENTENCE = re.compile(r"(?<=[.!?])[)*\"]*\s+(?=[A-Z0-9*`\[\"(])")


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences outside of code, titles, pictures and measurements; a cell of a table is a paragraph."""
    text = re.sub(r"\]\([^)]*\)", "]", NO_PROSE.sub("\n", CODE.sub("", text)))
    text = ROW.sub(cells, re.sub(r"`[^`]*`", "`code`", text))
    for paragraph in PARAGRAPH.split(text):
        yield from SENTENCE.split(" ".join(paragraph.split()))


def cells(row: re.Match[str]) -> str:
    """Return each cell of a table's row as a paragraph."""
    return row[0].replace("|", "\n\n")


@cases("page", *PAGES)
def test_no_sentence_is_long(page: Path) -> None:
    long = [one for one in sentences(page.read_text()) if len(one.split()) > MOST_WORDS]

    assert long == []
