"""A tree of thousands of processes is removed as one of a few."""

from collections.abc import Iterator
from copy import copy
from datetime import timedelta
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import call_command

from orchestrator import start_process
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import ProcessInstance, StepRun
from orchestrator.testing import run
from tests.apps.process_managers.fixtures import known
from tests.apps.subprocess_maps.processes import Fleet, Order, Passage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fleets")]


@pytest.fixture(scope="module")
def fleets() -> Iterator[None]:
    yield from known(Fleet, Passage)


def test_a_tree_of_thousands_goes_where_a_statement_takes_few_values(
    tmp_path: Path,
) -> None:
    """SQLite's limit is that of the tests."""
    fleet = start_process(Fleet, Order(1)).process_id
    run()
    child, more = ProcessInstance.objects.get(parent=fleet), list[ProcessInstance]()
    for _ in range(9_000):
        child.pk = uuid4()
        more.append(copy(child))
    ProcessInstance.objects.bulk_create(more)
    ProcessInstance.objects.update(finished_at=database_now() - timedelta(days=365))

    out, export = StringIO(), str(tmp_path / "gone.jsonl")
    call_command("prune", "--keep", "30", "--export", export, "--hurry", stdout=out)

    assert "9,002 processes" in out.getvalue()
    assert not ProcessInstance.objects.exists()
    assert not StepRun.objects.exists()
    assert len(Path(export).read_text().splitlines()) == 9_002
