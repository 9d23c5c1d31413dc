"""A crowded machine: processes that do nothing but compute."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

BURN = "import time\nends = time.monotonic() + {seconds}\nwhile time.monotonic() < ends: pass"


@contextmanager
def burners(number: int, seconds: float) -> Iterator[None]:
    """Let so many processes compute meanwhile, for so many seconds at most."""
    program = [sys.executable, "-S", "-c", BURN.format(seconds=seconds)]
    started = [subprocess.Popen(program) for _ in range(number)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
        for each in started:
            each.wait()
