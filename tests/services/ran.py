"""Python programs that a test runs to their end."""

import subprocess
import sys
from collections.abc import Mapping

from django.conf import settings


def ran(
    *words: str, environ: Mapping[str, str], check: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run Python with these words in the project's folder, and return what became of it and what it wrote.

    Raises:
        CalledProcessError: it failed, and `check` does not want that.
    """
    return subprocess.run(
        [sys.executable, *words],
        cwd=settings.BASE_DIR,
        env=environ,
        capture_output=True,
        text=True,
        timeout=600,
        check=check,
    )
