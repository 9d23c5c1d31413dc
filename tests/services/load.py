"""A machine that others keep busy: processes that only burn time."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Let so many processes burn time as long as the block runs."""
    burning = [
        subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
        for _ in range(processes)
    ]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()
