"""A tree of thousands of processes is removed as one of a few."""

import sqlite3
from collections.abc import Iterator
from copy import copy
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.db import connection

from orchestrator import start_process
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.storage import pruning
from orchestrator.models import ProcessInstance, StepRun
from orchestrator.testing import run
from tests.apps.subprocess_maps.processes import Fleet, Order, Passage
from tests.services.crews import knowing
from tests.services.pruned import prune
from tests.services.sizes import size

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fleets")]


fleets = knowing(Fleet, Passage, autouse=False)


CHILDREN = size(180, full=9_000)
AT_ONCE = size(100, full=pruning.AT_ONCE)
"""How many one statement names, of a fiftieth of the processes a fiftieth."""


@pytest.fixture
def few_values(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a statement of SQLite take as few values for what it names as where it was built with its own limit."""
    monkeypatch.setattr(pruning, "AT_ONCE", AT_ONCE)
    usual, few = 32_766, 32_766 * AT_ONCE // 5_000
    on_sqlite = connection.vendor == "sqlite"
    if on_sqlite:
        connection.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, few)
    yield
    if on_sqlite:
        connection.connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, usual)


@pytest.mark.full_size("9,000 sub-processes", seconds=120)
def test_a_tree_of_thousands_goes_where_a_statement_takes_few_values(
    tmp_path: Path, few_values: None
) -> None:
    fleet = start_process(Fleet, Order(1)).process_id
    run()
    child, more = ProcessInstance.objects.get(parent=fleet), list[ProcessInstance]()
    for _ in range(CHILDREN):
        child.pk = uuid4()
        more.append(copy(child))
    ProcessInstance.objects.bulk_create(more, batch_size=20)
    ProcessInstance.objects.update(finished_at=database_now() - timedelta(days=365))

    export = tmp_path / "gone.jsonl"
    told = prune("--keep", "30", "--export", str(export))

    assert f"{CHILDREN + 2:,} processes" in told
    assert (ProcessInstance.objects.count(), StepRun.objects.count()) == (0, 0)
    assert len(export.read_text().splitlines()) == CHILDREN + 2
