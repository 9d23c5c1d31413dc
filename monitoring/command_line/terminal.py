"""The terminal: its width in columns, wide characters, and colours where it has them."""

import json
import os
import re
import shutil
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import IO, Any

from monitoring.base.statuses import look
from orchestrator.text import STEERING

COLOURS = {
    "running": "34",
    "waiting": "36",
    "retry": "33",
    "failed": "1;31",
    "handled": "33",
    "done": "32",
    "idle": "2",
}
"""The codes of the console's tones."""

GAP = "  "
LEAST = 6
"""The least columns of a text, however narrow the terminal is."""


class Terminal:
    """The output of a command.

    Args:
        out: the stream.
        environment: the variables that describe the terminal.
    """

    def __init__(
        self, out: IO[str] | Any, environment: dict[str, str] | None = None
    ) -> None:
        self.out = out
        given = os.environ if environment is None else environment
        is_one = bool(getattr(out, "isatty", lambda: False)())
        self.coloured = (
            is_one and not given.get("NO_COLOR") and given.get("TERM") != "dumb"
        )
        self.width = (
            shutil.get_terminal_size().columns
            if is_one or given.get("COLUMNS")
            else None
        )
        """Columns of a line; None where lines may have any length, as in a file."""

    def line(self, text: str = "") -> None:
        self.out.write(f"{text}\n")

    def json(self, value: Any, indent: int | None = None) -> None:
        """Write a value as JSON, with control characters escaped."""
        text = json.dumps(value, ensure_ascii=False, indent=indent)
        if not text.isprintable():
            text = UNPRINTABLE.sub(lambda found: escape_char(found[0]), text)
        self.line(text)

    def painted(self, text: str, tone: str) -> str:
        """Return a text in the colour of one of the console's tones."""
        code = COLOURS.get(tone, "")
        return f"\x1b[{code}m{text}\x1b[0m" if self.coloured and code else text

    def strong(self, text: str) -> str:
        return f"\x1b[1m{text}\x1b[0m" if self.coloured else text

    def status(self, status: str, text: str = "") -> str:
        """Return a status, or a text about it, in its colour."""
        return self.painted(text or status, look(status).tone)

    def table(
        self,
        heads: Sequence[str],
        rows: Iterable[Sequence[str]],
        cuttable: Collection[str],
        coloured: str = "",
    ) -> None:
        """Write rows in columns that fit.

        Args:
            heads: the columns' names.
            rows: their cells.
            cuttable: the columns that may be cut.
            coloured: the name of the column that has statuses.
        """
        cells = [[printable_line(cell) for cell in row] for row in rows]
        places = [heads.index(name) for name in cuttable]
        wide = column_widths([heads, *cells], self.width, places)
        self.line(self.strong(GAP.join(_fitted(heads, wide)).rstrip()))
        for row in cells:
            shown = _fitted(row, wide)
            if coloured in heads:
                place = heads.index(coloured)
                shown[place] = self.status(row[place], shown[place])
            self.line(GAP.join(shown).rstrip())

    def fitted(self, text: str, taken: int = 0) -> str:
        """Return a text on one line, cut where the terminal ends."""
        text = printable_line(text)
        return text if self.width is None else cut(text, max(self.width - taken, LEAST))


def _fitted(cells: Sequence[str], wide: Sequence[int]) -> list[str]:
    """Return the cells of a row, each as wide as its column."""
    return [pad_text(cut(cell, n), n) for cell, n in zip(cells, wide, strict=True)]


def column_widths(
    rows: Sequence[Sequence[str]], width: int | None, cuttable: Sequence[int]
) -> list[int]:
    """Return the width of each column. The widest column that may be cut is made narrower until all fit."""
    wide = [max(map(text_width, column)) for column in zip(*rows, strict=True)]
    if width is None:
        return wide
    spare = width - len(GAP) * (len(wide) - 1) - sum(wide)
    while spare < 0:
        widest = max(cuttable, key=wide.__getitem__)
        if wide[widest] <= LEAST:
            break
        wide[widest] -= 1
        spare += 1
    return wide


def text_width(text: str) -> int:
    """Return the columns of a text: an East Asian wide character takes two, a combining one none."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Return a text of at most `width` columns; a cut one ends with an ellipsis."""
    if text_width(text) <= width:
        return text
    taken, kept = 0, []
    for char in text:
        taken += _char_width(char)
        if taken > width - 1:
            break
        kept.append(char)
    return f"{''.join(kept)}…"


def pad_text(text: str, width: int) -> str:
    return text + " " * (width - text_width(text))


LINE_SPACES = re.compile(r"[ \t-\r\x1c-\x1f\x85\u2028\u2029]+")
"""Spaces and the ends of lines."""

UNPRINTABLE = re.compile(r"[^\n\x20-\x7e]")
"""Characters that may be unprintable; most of them are printable."""


def escape_char(char: str) -> str:
    """Return a character in JSON: itself where it is printable, else its escape."""
    return char if char.isprintable() else json.dumps(char)[1:-1]


def printable_line(text: object) -> str:
    """Return a text on one line without characters that steer a terminal, since data may have any."""
    said = str(text)
    if said.isprintable():
        return said
    return STEERING.sub("�", " ".join(LINE_SPACES.split(said)).strip())
