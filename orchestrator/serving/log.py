"""The log files of child processes: kept small, and their errors shown on the console."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LARGEST = 10_000_000  # bytes; then it is moved to .log.1
QUIET = 5.0  # seconds between two errors of one child on the console
WORTH_SHOWING = (" ERROR ", " CRITICAL ")


class Log:
    """The output of one child process, in a file it adds to."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self.position = path.stat().st_size if path.exists() else 0
        self.quiet_until = 0.0
        self.unseen = 0

    def relay(self, say: Callable[[str], None]) -> None:
        """Show errors written since the last call: at most one in `QUIET` seconds, with the number of those between."""
        for line in self.new_errors():
            if time.monotonic() < self.quiet_until:
                self.unseen += 1
                continue
            more = f" (and {self.unseen} more in {self.path})" if self.unseen else ""
            say(f"{self.name}: {line[:200]}{more}")
            self.quiet_until, self.unseen = time.monotonic() + QUIET, 0
        self.keep_small()

    def new_errors(self) -> Iterator[str]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.position)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # still being written
                self.position += len(line)
                text = line.decode(errors="replace").rstrip()
                if any(word in text for word in WORTH_SHOWING):
                    yield "".join(c for c in text if c.isprintable())

    def keep_small(self) -> None:
        """Copy a large log to .log.1, and empty it. Its writer appends, so it goes on at the new beginning."""
        if self.position > LARGEST:
            shutil.copyfile(self.path, self.path.with_suffix(".log.1"))
            with self.path.open("r+b") as file:
                file.truncate()
            self.position = 0


def last_lines(path: Path, count: int = 3) -> str:
    """Return the last lines of the file `path` as one."""
    lines = path.read_text(errors="replace").split("\n") if path.exists() else []
    return " / ".join([line.strip() for line in lines if line.strip()][-count:])
