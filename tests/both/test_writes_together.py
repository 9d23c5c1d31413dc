"""Writes of one change that are alike go out as one statement, and write what each would have written."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from orchestrator.engine.sql.batch import Batch, Statement
from orchestrator.engine.sql.group_commit import merge_alike
from orchestrator.engine.sql.tables import step_runs
from orchestrator.exceptions import LeaseLost
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus
from tests.apps.patterns.desk import launch
from tests.apps.wide_graphs.processes import WORKFLOWS, Beside
from tests.services.crews import knowing
from tests.services.left import left_by

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        "postgresql" not in settings.DATABASES["default"]["ENGINE"],
        reason="SQLite is sent one write after the other",
    ),
]

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
VALUES: list[dict[str, Any]] = [
    {"result": {"a": [None, 2.5, 'ü\\"\u2028']}, "checksum": "x", "error": "%s ' \n"},
    {"result": None, "wake_at": NOW, "remaining": timedelta(days=-2, microseconds=3)},
    {"result": 1 << 80, "progress": [], "item": 3, "redo": True, "kind": StepKind.ITEM},
    {"result": "", "progress": {}, "left": 7, "blocked": "redo"},
]


known = knowing(*WORKFLOWS)


@pytest.fixture
def process() -> Iterator[ProcessInstance]:
    yield launch(Beside, ("a", "b"))
    ProcessInstance.objects.all().delete()


def rows(process: ProcessInstance) -> list[StepRun]:
    one = {"instance_id": process.pk, "status": StepStatus.DONE, "started_at": NOW}
    return [StepRun(node=f"t{n}", **one, **more) for n, more in enumerate(VALUES)]


def send(writes: Any) -> None:
    with transaction.atomic():
        Batch(merge_alike(list(writes))).send()


def inserts(process: ProcessInstance) -> list[Statement]:
    return [step_runs.insert(row) for row in rows(process)]


def updates(process: ProcessInstance) -> list[Statement]:
    """Have rows that say nothing yet, and give the writes that have them say all."""
    names = sorted({name for values in VALUES for name in values})
    one = {"instance_id": process.pk, "status": "ready", "started_at": NOW}
    send(step_runs.insert(StepRun(node=row.node, **one)) for row in rows(process))
    keys = dict(process.step_runs.values_list("node", "pk"))
    return [
        step_runs.update(
            {name: getattr(row, name) for name in names},
            {"id": keys[row.node], "owner": "", "left": None},
        )
        for row in rows(process)
    ]


@pytest.mark.parametrize("writes", [inserts, updates])
def test_rows_that_are_written_together_are_what_each_would_be(
    writes: Callable[[ProcessInstance], list[Statement]], process: ProcessInstance
) -> None:
    def sent_singly() -> None:
        for one in writes(process):
            send([one])

    assert len(merge_alike(writes(process))) == 1
    process.step_runs.filter(node__startswith="t").delete()
    found = left_by(lambda: send(writes(process)), [StepRun])
    assert found == left_by(sent_singly, [StepRun])


def test_one_row_that_is_not_as_it_must_be_undoes_all(process: ProcessInstance) -> None:
    send(inserts(process))
    added = process.step_runs.filter(node__startswith="t")
    ids = list(added.values_list("pk", flat=True))
    process.step_runs.filter(pk=ids[2]).update(owner="another")
    writes = [step_runs.update({"error": "new"}, {"id": id, "owner": ""}) for id in ids]

    with pytest.raises(LeaseLost):
        send(writes)
    assert not process.step_runs.filter(error="new").exists()


def test_writes_that_may_meet_are_left_in_their_order(process: ProcessInstance) -> None:
    writes = [step_runs.update({"error": str(n)}, {"id": 1}) for n in range(3)]

    assert merge_alike(writes) is writes


def test_a_later_write_meets_those_that_were_put_together() -> None:
    alike = merge_alike([step_runs.update({"error": ""}, {"id": n}) for n in range(3)])
    one = step_runs.update({"lost": ""}, {"id": 2})

    assert Batch([*alike, one]).meeting() is not None
    assert Batch([*alike, step_runs.update({"lost": ""}, {"id": 3})]).meeting() is None
