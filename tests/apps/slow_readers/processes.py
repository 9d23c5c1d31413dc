"""What the engine finds when this app is installed: no process, but other readers for the examples' steps."""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from examples import readers
from examples.readers import light

PAUSE = 0.1  # seconds: long enough to be killed in, and nothing has to be loaded again afterwards


def unhurried(reader: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reader that takes a moment longer."""

    @wraps(reader)
    def read(*arguments: Any) -> Any:
        time.sleep(PAUSE)
        return reader(*arguments)

    return read


for name in readers.READERS:
    setattr(readers, name, unhurried(getattr(light, name)))
