"""The release before: its code from the history of the repository, as programs beside today's."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from django.conf import settings

from tests.services.program import Program, environ

RELEASE = "d584bb8"
"""The commit of the last release."""

LAST_MIGRATION = "0028_attempts_cut_off"
"""The last migration of `orchestrator` in it; `monitoring` has no tables."""

PARTS = (
    *("bootstrap.py", "examples", "manage.py", "monitoring", "orchestrator"),
    *("static", "templates"),
    *("tests/__init__.py", "tests/apps/__init__.py"),
)
"""What of it runs; the application comes from today's tests."""


class FormerRelease:
    """The code of the release before, with an application of today's tests.

    Args:
        folder: where its code is put.
        app: the package of the application, in tests/apps.
    """

    def __init__(self, folder: Path, app: str) -> None:
        self.folder = folder
        unpack(folder)
        here = Path("tests", "apps", app)
        (folder / here).symlink_to(settings.BASE_DIR / here)

    def command(self, name: str, *words: str) -> Program:
        """Return one of its management commands as a program."""
        program = Program(f"{name} of {RELEASE}", self._words(name, *words))
        program.child.folder = self.folder
        return program

    def run(self, code: str) -> str:
        """Run Python with its code, and return what that prints."""
        done = subprocess.run(
            self._words("shell", "--verbosity", "0", "-c", code),
            cwd=self.folder,
            env=environ(),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _words(self, *words: str) -> list[str]:
        return [sys.executable, str(self.folder / "manage.py"), *words]


def unpack(folder: Path) -> None:
    """Put the code of the release into a folder; skip the test where the history is not there."""
    command = ["git", "archive", RELEASE, "--", *PARTS]
    try:
        done = subprocess.run(
            command, cwd=settings.BASE_DIR, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"the history with commit {RELEASE} is not there")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
