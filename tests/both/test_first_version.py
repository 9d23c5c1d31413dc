"""A database that the first version has filled is migrated, and today's code brings all its processes to their ends.

How it was filled is told in tests/first_version/README.md.
"""

import json
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings

from orchestrator.models import CauseKind
from tests.services.database import another_database
from tests.services.program import environ
from tests.services.valkey import ValkeyServer

APPS = (
    "tests.apps.patterns",
    "tests.apps.process_managers",
    "tests.apps.compensation",
)
CHANGED: list[str] = []
"""Definitions of examples and tests that were changed on purpose since."""

SAID = [
    ["answered", "after_answer", "redo", "answer", "", 0],
    ["doubting", "doubt", "redo", "measure", "", 0],
    ["fail-fast", "slow", "failure", "risky", "", 0],
    ["hasty", "hotel", "failure", "flight", "", 0],
    *[["hurried", "leg", "failure", "rest", "", 0]] * 4,  # a map and its three elements
    ["locked", "be_locked", "", "", "", 5],
    ["paying", "pay", "", "", "died", 0],
    ["refused", "be_refused", "", "", "", 3],
    ["settling", "settle", "", "", "timed_out", 0],
    ["trip", "flight", "", "", "died", 0],
    ["trip", "flight", "", "", "timed_out", 0],
    ["undoable", "flight", "undoing", "", "", 0],
]
"""What the old texts say: process, step, why it is blocked and on what, how its worker was lost, times given back."""


def run_to_the_end(function: str) -> dict[str, Any]:
    """Have a function of `tests.first_version.seeing` load, migrate and end it all in a database of its own."""
    see = f"from tests.first_version.seeing import {function}; {function}()"
    with another_database(function) as url:
        found = subprocess.run(
            [sys.executable, "manage.py", "shell", "--verbosity", "0", "-c", see],
            cwd=settings.BASE_DIR,
            env={
                **environ(),
                "DATABASE_URL": url,
                "PROCESSION_APPS": ",".join(APPS),
                "PROCESSION_QUEUES": "default,press",
                "PROCESSION_LOG_LEVEL": "CRITICAL",  # much goes wrong, as it should
            },
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert found.returncode == 0, found.stderr
    seen: dict[str, Any] = json.loads(found.stdout)
    return seen


@pytest.fixture(scope="module")
def seen(valkey: ValkeyServer) -> dict[str, Any]:
    return run_to_the_end("main")


def test_new_columns_say_what_the_old_texts_said(seen: dict[str, Any]) -> None:
    assert seen["columns"] == SAID


def test_the_old_texts_come_back_when_the_migration_is_undone(
    seen: dict[str, Any],
) -> None:
    assert seen["as before"] is True


def test_what_moved_a_process_is_read_as_it_was_written(seen: dict[str, Any]) -> None:
    assert seen["causes"] == sorted(CauseKind)
    assert seen["misread"] == []
    assert seen["untold"] == []


def test_definitions_that_did_not_change_keep_their_fingerprints(
    seen: dict[str, Any],
) -> None:
    assert seen["definitions"] == 100
    assert seen["changed"] == CHANGED
    assert seen["checks"] == []


def test_nothing_is_broken_after_the_migration(seen: dict[str, Any]) -> None:
    assert seen["live"] == 81
    assert seen["broken"] == []


def test_what_was_given_up_while_its_process_lives_is_parked_again(
    seen: dict[str, Any],
) -> None:
    assert (seen["stranded"], seen["parked again"]) == (0, 2)


def test_all_processes_end(seen: dict[str, Any]) -> None:
    assert seen["not ended"] == []
    assert seen["broken in the end"] == []


def test_a_step_that_was_to_come_to_its_end_first_is_undone_then(
    seen: dict[str, Any],
) -> None:
    assert seen["undone"] == ["cancelled", ["flight", "done"]]


def test_attempts_that_lost_their_workers_count(seen: dict[str, Any]) -> None:
    late, dead = seen["lost"]
    assert late.startswith("TimedOut: ")
    assert late.endswith("2 times")
    assert dead.startswith("Interrupted: ")
