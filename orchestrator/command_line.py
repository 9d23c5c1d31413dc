"""The entry point of `manage.py`: runs a command, and reports a set-up mistake in one line."""

import gc
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django import get_version
from django.core.management import ManagementUtility
from django.db import DatabaseError

from orchestrator.configuration.conf import SettingRefused
from orchestrator.exceptions import InvalidDefinition
from orchestrator.missing_tables import MIGRATE, lacks_tables


class ProjectCommands(ManagementUtility):
    """Management commands. `manage.py` switches garbage collection off until their modules are loaded."""

    def fetch_command(self, subcommand: str) -> Any:
        """Return the command, and switch garbage collection on."""
        gc.freeze()
        gc.enable()
        return super().fetch_command(subcommand)

    def execute(self) -> None:
        """Run the command; `version` prints the project's."""
        if self.argv[1:] in (["version"], ["--version"]):
            sys.stdout.write(f"{version_line()}\n")
        else:
            super().execute()


def main(argv: Sequence[str]) -> None:
    """Run the management command of `argv`, by default with the settings of the bundled project."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")
    if of_a_clone := CLONE_COMMANDS.get("".join(argv[1:2])):
        gc.enable()
        sys.exit(of_a_clone(argv[2:]))
    if data_dir := option_value(argv, "--data-dir"):
        # The settings need it before any command can read its options.
        os.environ["PROCESSION_DATA_DIR"] = data_dir
    if "--demo" in argv or argv[1:2] == ["seed"]:
        # The examples are apps, and so a matter of the settings too.
        os.environ["PROCESSION_DEMO"] = "1"
    try:
        ProjectCommands(list(argv)).execute()
    except SettingRefused as refused:
        sys.exit(str(refused))
    except InvalidDefinition as refused:
        sys.exit(f"{user_code_place(refused)}: {refused}")
    except DatabaseError as error:
        if not lacks_tables(error):
            raise
        sys.exit(MIGRATE)


def version_line() -> str:
    """Return what `version` prints."""
    from orchestrator.configuration.version import __version__  # noqa: PLC0415  it asks Git

    return f"Procession {__version__} on Django {get_version()}"


def user_code_place(error: BaseException) -> str:
    """Return file and line of the last frame of an error that is neither Procession's nor Python's."""
    own = str(Path(__file__).parent) + os.sep
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [at for at in frames if not at.filename.startswith((own, "<"))]
    last = (theirs or frames)[-1]
    return f"{last.filename}, line {last.lineno}"


def run_tests(arguments: Sequence[str]) -> int:
    """Run the tests of the clone, with data of their own; return the exit code.

    This is no management command: in a project that uses these apps, `test` stays Django's.
    """
    from tests import stages  # noqa: PLC0415  not part of the installed package

    with tempfile.TemporaryDirectory(prefix="procession-test-") as folder:
        os.environ["PROCESSION_DATA_DIR"] = folder
        return stages.main(arguments)


def photograph_pages(arguments: Sequence[str]) -> int:
    """Photograph the pages of a filled console; return the exit code."""
    from tests.screens import command  # noqa: PLC0415  not part of the installed package

    return command.main(arguments)


CLONE_COMMANDS = {"test": run_tests, "screens": photograph_pages}
"""Commands of a clone of the repository; they run without Django's settings."""


def option_value(argv: Sequence[str], name: str) -> str:
    """Return the value of the option `name` in `argv`, as `--name value` or `--name=value`; "" without it."""
    for position, word in enumerate(argv):
        if word == name:
            return next(iter(argv[position + 1 :]), "")
        if word.startswith(f"{name}="):
            return word.removeprefix(f"{name}=")
    return ""
