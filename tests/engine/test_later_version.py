"""A database that commit d584bb8 has filled is migrated, and today's code brings all its processes to their ends.

How it was filled is told in tests/first_version/README.md.
"""

from typing import Any

import pytest

from tests.engine.test_first_version import run_to_the_end
from tests.services.valkey import ValkeyServer


@pytest.fixture(scope="module")
def seen(valkey: ValkeyServer) -> Any:
    return run_to_the_end("later")


def test_unchanged_definitions_keep_their_fingerprints(seen: dict[str, Any]) -> None:
    assert seen["changed"] == []
    assert seen["checks"] == []


def test_nothing_is_broken_after_the_migration(seen: dict[str, Any]) -> None:
    assert {"failed", "paused", "retrying", "waiting"} <= set(seen["statuses"])
    assert seen["parked"] > 1
    assert seen["broken"] == []


def test_failures_of_one_cause_stay_one_marked_group(seen: dict[str, Any]) -> None:
    assert seen["marks"] > 5
    assert seen["failed again"] > 1
    assert seen["of other causes"] == []


def test_all_processes_end(seen: dict[str, Any]) -> None:
    assert seen["not ended"] == []
    assert seen["broken in the end"] == []
