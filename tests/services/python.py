"""Python in a process of its own, and what it says."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings


def ran(
    *words: str,
    cwd: Path = settings.BASE_DIR,
    environ: Mapping[str, str] | None = None,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run Python with these words, in the project's folder and this environment unless others are given.

    Raises:
        CalledProcessError: it failed, and `check` does not want that.
    """
    command = [sys.executable, *words]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=check,
    )


def printed(program: str, **environ: str) -> str:
    """Return what a program prints, in this environment or with these variables alone; it must end well."""
    done = ran("-c", program, environ=environ or None)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
