"""Pruning that is killed leaves each process whole or gone, and whoever is gone stands in the export."""

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from uuid6 import uuid7

from orchestrator.models import (
    Checkpoint,
    Definition,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from tests.services.patience import wait_for
from tests.services.program import Program, management_command
from tests.services.sizes import size

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
CHILDREN = 3


@pytest.fixture
def ended() -> Iterator[set[UUID]]:
    """Give the ids of trees that ended long ago, with all that belongs to them."""
    row = Definition.objects.create(name="ended", version=1, fingerprint="", graph={})

    of_it = {"definition": row, "name": row.name, "status": "completed", "revision": 1}
    when = dict.fromkeys(("started_at", "changed_at", "finished_at"), LONG_AGO)

    def process(parent: ProcessInstance | None) -> ProcessInstance:
        return ProcessInstance(id=uuid7(), parent=parent, **of_it, **when)

    roots = [process(None) for _ in range(size(60, full=10_000))]
    children = [process(root) for root in roots for _ in range(CHILDREN)]
    ProcessInstance.objects.bulk_create([*roots, *children], batch_size=1_000)
    of_all = [one.pk for one in (*roots, *children)]
    first = {"revision": 1, "cause": "start", "steps": [], "data": {}, "at": LONG_AGO}
    Checkpoint.objects.bulk_create(Checkpoint(instance_id=pk, **first) for pk in of_all)
    yield set(of_all)
    ProcessInstance.objects.filter(name=row.name).delete()
    row.delete()


def test_what_is_gone_was_exported_whole(ended: set[UUID], tmp_path: Path) -> None:
    file = tmp_path / "ended.jsonl"
    file.touch()
    for _ in range(2):
        run = pruning(file)
        before = file.stat().st_size
        # On a crowded machine it may end before it is killed, and the next one has nothing to remove.
        wait_for(lambda: file.stat().st_size > before or not run.alive, 20)  # noqa: B023  # at once
        time.sleep(0.02)
        if run.alive:
            os.kill(run.pid, signal.SIGKILL)
        wait_for(lambda: not run.alive, 20)  # noqa: B023  # at once
        there = set(ProcessInstance.objects.values_list("pk", flat=True))
        assert ended - there <= exported(file)
        assert len(there) % (1 + CHILDREN) == 0
        assert Checkpoint.objects.count() == len(there)
    run = pruning(file, "--hurry")
    wait_for(lambda: not run.alive, 60)

    assert not ProcessInstance.objects.exists()
    assert not StepRun.objects.exists()
    assert exported(file) == ended
    told = OperatorAction.objects.filter(action="prune").values_list("after", flat=True)
    assert sum(after["processes"]["ended"] for after in told) == len(ended)


def pruning(file: Path, *more: str) -> Program:
    """Begin to prune into a file."""
    run = management_command("prune", "--keep", "30", "--export", str(file), *more)
    run.start()
    return run


def exported(file: Path) -> set[UUID]:
    """The processes of which a whole line is there, each with what belongs to it."""
    found = set()
    for line in file.read_text().splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # it was cut off
        assert len(row["checkpoints"]) == 1
        found.add(UUID(row["process"]["id"]))
    return found
