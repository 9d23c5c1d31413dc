"""Runs a command of the bundled project, and says a set-up mistake in one line."""

import gc
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management import ManagementUtility
from django.db import DatabaseError

from orchestrator.conf import SettingRefused
from orchestrator.exceptions import InvalidDefinition
from orchestrator.missing_tables import MIGRATE, lacks_tables


class ProjectCommands(ManagementUtility):
    """Management commands; garbage is collected from when everything is loaded, which `manage.py` has put off."""

    def fetch_command(self, subcommand: str) -> Any:
        """Return the command, which then runs."""
        gc.freeze()
        gc.enable()
        return super().fetch_command(subcommand)


def main(argv: Sequence[str]) -> None:
    """Run the management command of `argv`; the settings are the bundled project's unless the environment says."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "orchestrator.settings")
    if of_a_clone := OF_A_CLONE.get("".join(argv[1:2])):
        gc.enable()
        sys.exit(of_a_clone(argv[2:]))
    if data_dir := option(argv, "--data-dir"):
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
        sys.exit(f"{place(refused)}: {refused}")
    except DatabaseError as error:
        if not lacks_tables(error):
            raise
        sys.exit(MIGRATE)


def place(error: BaseException) -> str:
    """Return file and line of the last code, neither ours nor Python's own, that an error came through."""
    own = str(Path(__file__).parent) + os.sep
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [at for at in frames if not at.filename.startswith((own, "<"))]
    last = (theirs or frames)[-1]
    return f"{last.filename}, line {last.lineno}"


def test(arguments: Sequence[str]) -> int:
    """Run the project's own checks and tests, away from the data of an installation; return the exit code.

    Not a management command: the `test` of a project that uses these apps stays Django's.
    """
    from tests import stages  # noqa: PLC0415  not part of the installed package

    with tempfile.TemporaryDirectory(prefix="procession-test-") as folder:
        os.environ["PROCESSION_DATA_DIR"] = folder
        return stages.main(arguments)


def screens(arguments: Sequence[str]) -> int:
    """Photograph the pages of a filled console of its own; return the exit code."""
    from tests.screens import command  # noqa: PLC0415  not part of the installed package

    return command.main(arguments)


OF_A_CLONE = {"test": test, "screens": screens}
"""Commands that are run before there are settings, and in a clone of the project alone."""


def option(argv: Sequence[str], name: str) -> str:
    """Return the value of the option `name` in `argv`, as `--name value` or `--name=value`; "" without it."""
    for position, word in enumerate(argv):
        if word == name:
            return next(iter(argv[position + 1 :]), "")
        if word.startswith(f"{name}="):
            return word.removeprefix(f"{name}=")
    return ""
