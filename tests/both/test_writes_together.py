"""Writes of one change that are alike go out as one statement, and write what each would have written."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction

from orchestrator import start_process
from orchestrator.engine.storage.alike import together
from orchestrator.engine.storage.batch import Batch
from orchestrator.engine.storage.tables import step_runs
from orchestrator.exceptions import LeaseLost
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus
from orchestrator.testing import registered
from tests.apps.wide_graphs.processes import WORKFLOWS, Beside, Names

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        "postgresql" not in settings.DATABASES["default"]["ENGINE"],
        reason="SQLite is sent one write after the other",
    ),
]

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
VALUES: list[dict[str, Any]] = [
    {
        "result": {"a": [1, None, 2.5, 'ü\\"\u2028']},
        "checksum": "x",
        "error": "%s ' \n",
    },
    {"result": None, "wake_at": NOW, "remaining": timedelta(days=-2, microseconds=3)},
    {"result": 1 << 80, "progress": [], "item": 3, "redo": True, "kind": StepKind.ITEM},
    {"result": "", "progress": {}, "left": 7, "blocked": "redo"},
]


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(*WORKFLOWS):
        yield


@pytest.fixture
def process() -> Iterator[ProcessInstance]:
    receipt = start_process(Beside, Names(("a", "b")))
    yield ProcessInstance.objects.get(pk=receipt.process_id)
    ProcessInstance.objects.all().delete()


def rows(process: ProcessInstance, prefix: str) -> list[StepRun]:
    return [
        StepRun(
            instance_id=process.pk,
            node=f"{prefix}{number}",
            status=StepStatus.DONE,
            started_at=NOW,
            **values,
        )
        for number, values in enumerate(VALUES)
    ]


def stored(process: ProcessInstance, prefix: str) -> list[dict[str, Any]]:
    found = process.step_runs.filter(node__startswith=prefix).order_by("pk")
    return [
        {k: v for k, v in row.items() if k not in ("id", "node")}
        for row in found.values()
    ]


def send(writes: Any) -> None:
    with transaction.atomic():
        Batch(together(list(writes))).send()


def test_rows_that_are_inserted_together_are_what_each_would_be(
    process: ProcessInstance,
) -> None:
    writes = [step_runs.insert(row) for row in rows(process, "t")]
    assert len(together(writes)) == 1
    send(writes)
    for row in rows(process, "s"):
        send([step_runs.insert(row)])

    assert stored(process, "t") == stored(process, "s") != []


def test_rows_that_are_updated_together_are_what_each_would_be(
    process: ProcessInstance,
) -> None:
    names = sorted({name for values in VALUES for name in values})
    found: dict[str, list[dict[str, Any]]] = {}
    for prefix in ("t", "s"):
        new = rows(process, prefix)
        send(
            step_runs.insert(
                StepRun(
                    instance_id=row.instance_id,
                    node=row.node,
                    status="ready",
                    started_at=NOW,
                )
            )
            for row in new
        )
        keys = {row.node: row.pk for row in process.step_runs.all()}
        writes = [
            step_runs.update(
                {name: getattr(row, name) for name in names},
                {"id": keys[row.node], "owner": "", "left": None},
            )
            for row in new
        ]
        for batch in [writes] if prefix == "t" else [[one] for one in writes]:
            send(batch)
        assert len(together(writes)) == 1
        found[prefix] = stored(process, prefix)

    assert found["t"] == found["s"]


def test_one_row_that_is_not_as_it_must_be_undoes_all(process: ProcessInstance) -> None:
    send(step_runs.insert(row) for row in rows(process, "t"))
    keys = list(
        process.step_runs.filter(node__startswith="t").values_list("pk", flat=True)
    )
    process.step_runs.filter(pk=keys[2]).update(owner="another")
    writes = [
        step_runs.update({"error": "new"}, {"id": pk, "owner": ""}) for pk in keys
    ]

    with pytest.raises(LeaseLost):
        send(writes)
    assert not process.step_runs.filter(error="new").exists()


def test_writes_that_may_meet_are_left_in_their_order(process: ProcessInstance) -> None:
    writes = [step_runs.update({"error": str(n)}, {"id": 1}) for n in range(3)]

    assert together(writes) is writes


def test_a_later_write_meets_those_that_were_put_together() -> None:
    alike = together([step_runs.update({"error": ""}, {"id": n}) for n in range(3)])
    one = step_runs.update({"lost": ""}, {"id": 2})

    assert Batch([*alike, one]).meeting() is not None
    assert Batch([*alike, step_runs.update({"lost": ""}, {"id": 3})]).meeting() is None
