"""A database that the first version has filled is migrated, and today's code brings all its processes to their ends.

How it was filled is told in tests/first_version/README.md.
"""

import json
from typing import Any

import pytest

from orchestrator.models import CauseKind
from tests.services.cases import cases
from tests.services.database import another_database
from tests.services.program import environ
from tests.services.python import ran
from tests.services.valkey import ValkeyServer

APPS = ("tests.apps.patterns", "tests.apps.process_managers", "tests.apps.compensation")
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


def run_to_the_end(function: str) -> Any:
    """Have a function of `tests.first_version.seeing` load, migrate and end it all in a database of its own."""
    see = f"from tests.first_version.seeing import {function}; {function}()"
    with another_database(function) as url:
        variables = {
            **environ(),
            "DATABASE_URL": url,
            "PROCESSION_APPS": ",".join(APPS),
            "PROCESSION_QUEUES": "default,press",
            "PROCESSION_LOG_LEVEL": "CRITICAL",  # much goes wrong, as it should
        }
        command = ["manage.py", "shell", "--verbosity", "0", "-c", see]
        found = ran(*command, environ=variables)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@pytest.fixture(scope="module")
def seen(valkey: ValkeyServer) -> Any:
    return run_to_the_end("main")


SEEN = {
    "columns": SAID,
    # The old texts come back when the migration is undone.
    "as before": True,
    # What moved a process is read as it was written.
    "causes": sorted(CauseKind),
    "misread": [],
    "untold": [],
    # Definitions that did not change keep their fingerprints.
    "definitions": 100,
    "changed": CHANGED,
    "checks": [],
    # Nothing is broken after the migration, and all processes end.
    "live": 81,
    "broken": [],
    "not ended": [],
    "broken in the end": [],
    # What was given up while its process lives is parked again.
    "stranded": 0,
    "parked again": 2,
    # A step that was to come to its end first is undone then.
    "undone": ["cancelled", ["flight", "done"]],
}


@cases("what", *SEEN)
def test_what_the_first_version_left_is_read_and_comes_to_its_end(
    what: str, seen: dict[str, Any]
) -> None:
    assert seen[what] == SEEN[what]


def test_attempts_that_lost_their_workers_count(seen: dict[str, Any]) -> None:
    late, dead = seen["lost"]
    assert (late[:10], late[-7:]) == ("TimedOut: ", "2 times")
    assert dead.startswith("Interrupted: ")
