"""One `up` at a time on the same data."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.serving import CannotStart


@contextmanager
def lock_folder(data_dir: Path) -> Iterator[None]:
    """Hold the lock of the data folder; the system releases it however the process ends.

    Raises:
        CannotStart: another process holds it.
    """
    path = data_dir / "up.lock"
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotStart(
                f"Procession is already up on {data_dir}, as process {file.read().strip()}. "
                "Stop it first, or choose another folder with --data-dir."
            ) from None
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield
