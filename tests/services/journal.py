"""What pieces of work have written down of themselves, from whatever process; nothing rolls it back."""

import os
from pathlib import Path

from django.conf import settings


class Journal:
    """A file of lines, each of several words; its path is in the run's data, which goes with the run."""

    def __init__(self, name: str | Path) -> None:
        self.path: Path = settings.DATA_DIR / name

    def note(self, *words: object) -> None:
        """Add a line, in one write that a kill cannot part."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, ("\t".join(map(str, words)) + "\n").encode())
        os.close(file)

    def lines(self) -> list[list[str]]:
        """Return the words of each line, in order."""
        text = self.path.read_text() if self.path.exists() else ""
        return [line.split("\t") for line in text.splitlines()]

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)
