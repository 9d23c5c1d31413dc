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
from tests.services.cases import cases
from tests.services.database import another_database
from tests.services.program import environ
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


@pytest.fixture(scope="module")
def seen(valkey: ValkeyServer) -> Any:
    """Have all of it loaded, migrated and ended in a database of its own; return what was seen there."""
    see = "from tests.first_version.seeing import main; main()"
    with another_database("main") as url:
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
    return json.loads(found.stdout)


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
