"""A step that starts a process of its own and never comes back."""

import subprocess
import sys
import time

from tests.apps.patterns.ledger import note, noted

LONG = 600  # seconds that both would go on

ASLEEP = f"import time; time.sleep({LONG})"


def board() -> None:
    """Start somebody who sleeps, note who it is, and hang."""
    sailor = subprocess.Popen([sys.executable, "-c", ASLEEP])
    note(f"sailor {sailor.pid}")
    time.sleep(LONG)


def sailors() -> list[int]:
    """Return the process ids of all who were started."""
    lines = [line.split() for line in noted()]
    return [int(words[1]) for words in lines if words[0] == "sailor"]
