"""Changes of several processes in one statement: what cannot be written is left out, and nothing of it stays."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from uuid6 import uuid7

from orchestrator.engine.sql import group_commit
from orchestrator.engine.sql.batch import Statement, send
from orchestrator.engine.sql.row_statements import Insert
from orchestrator.engine.sql.tables import checkpoints, instances, step_runs
from orchestrator.models import Checkpoint, Definition, ProcessInstance, StepRun
from tests.apps.process_managers.together import together
from tests.services.left import left_by

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 11, 1, 12, 30, 15, 123456, tzinfo=UTC)


def standing(row: Definition, number: int, **how: Any) -> list[ProcessInstance]:
    """Have so many processes of a definition."""
    of = {"definition": row, "name": row.name, "started_at": NOW, "changed_at": NOW}
    processes = (ProcessInstance(id=uuid7(), **of, **how) for _ in range(number))
    return ProcessInstance.objects.bulk_create(processes)


@pytest.fixture
def runs() -> Iterator[list[StepRun]]:
    """Give the claimed visits of five processes."""
    row = Definition.objects.create(name="grouped", version=1, fingerprint="", graph={})
    held = {"kind": "step", "status": "running", "owner": "me", "attempt": 1}
    processes = standing(row, 5, status="running", revision=3)
    yield [
        StepRun.objects.create(instance=process, node="now", started_at=NOW, **held)
        for process in processes
    ]
    ProcessInstance.objects.filter(name=row.name).delete()
    row.delete()


def change(run: StepRun, result: Any = None) -> list[Statement]:
    """Give the writes that settle a visit and begin the next one."""
    of = {"instance_id": run.instance_id}
    held = {"id": run.pk, "owner": "me", "attempt": 1}
    done = {"status": "done", "result": result, "finished_at": NOW, "owner": ""}
    begun = StepRun(node="next", kind="step", started_at=NOW, **of)
    told = {"cause": f"step:{run.pk}", "steps": [run.node], "data": {}, "at": NOW}
    return [
        instances.update(
            {"revision": 4, "step": "next"}, {"id": run.instance_id, "revision": 3}
        ),
        step_runs.update(done, held),
        step_runs.insert_known(begun),
        checkpoints.insert(Checkpoint(revision=4, **told, **of)),
    ]


def following(writes: list[Statement]) -> StepRun:
    """Give the visit that a change begins."""
    insert = writes[2]
    assert isinstance(insert, Insert)
    [item] = insert.items
    assert isinstance(item, StepRun)
    return item


def written(runs: list[StepRun]) -> list[bool]:
    """Tell of each visit whether it is settled, with all that belongs to it or nothing of it."""
    found = []
    for run in runs:
        run.refresh_from_db()
        process = ProcessInstance.objects.get(pk=run.instance_id)
        done = run.status == "done"
        assert process.revision == 4 - (not done)
        assert process.step_runs.filter(node="next").count() == done
        assert process.checkpoints.count() == done
        found.append(done)
    return found


def test_all_are_written_and_know_what_they_have_begun(runs: list[StepRun]) -> None:
    changes = [change(run) for run in runs]
    assert group_commit.commit_changes(changes).written == [True] * 5
    assert written(runs) == [True] * 5
    for run, writes in zip(runs, changes, strict=True):
        begun = StepRun.objects.get(pk=following(writes).pk)
        assert (begun.instance_id, begun.node) == (run.instance_id, "next")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite is sent in order")
def test_it_takes_one_statement_however_many_there_are(runs: list[StepRun]) -> None:
    texts = []
    for some in (runs[:2], runs[2:]):
        with CaptureQueriesContext(connection) as queries:
            group_commit.commit_changes([change(run) for run in some])
        [query] = queries
        texts.append(query["sql"].partition("json_to_recordset(")[0])
    assert texts[0] == texts[1]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite plans otherwise")
@pytest.mark.parametrize("analysed", [False, True])
def test_rows_are_looked_up_by_their_keys_in_a_table_of_any_size(
    runs: list[StepRun], analysed: bool
) -> None:
    """A plan is kept for long; one that reads a small table whole would read it whole when it has grown."""
    row = Definition.objects.get(name="grouped")
    standing(row, 1000, status="done", revision=4)
    if analysed:
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE orchestrator_processinstance")
    with CaptureQueriesContext(connection) as queries:
        group_commit.commit_changes([change(run) for run in runs])
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute(f"PREPARE written AS {queries[0]['sql']}")
        cursor.execute("EXPLAIN EXECUTE written('[]')")
        plan = "\n".join(line for (line,) in cursor)
        cursor.execute("DEALLOCATE written")

    assert "orchestrator_processinstance_pkey" in plan
    assert "Seq Scan" not in plan


@pytest.mark.parametrize(
    "spoil",
    [
        lambda run: StepRun.objects.filter(pk=run.pk).update(owner="another"),
        lambda run: ProcessInstance.objects.filter(pk=run.instance_id).update(
            status="waiting", revision=4
        ),
    ],
    ids=["another worker has the visit", "the process was changed"],
)
def test_who_comes_too_late_is_left_out(
    runs: list[StepRun], spoil: Callable[[StepRun], object]
) -> None:
    spoil(runs[1])
    found = group_commit.commit_changes([change(run) for run in runs])
    assert found == ([True, False, True, True, True], None)
    process = ProcessInstance.objects.get(pk=runs[1].instance_id)
    assert (process.checkpoints.count(), process.step_runs.count()) == (0, 1)
    assert StepRun.objects.get(pk=runs[1].pk).status == "running"


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer")
def test_what_others_have_locked_is_not_waited_for(runs: list[StepRun]) -> None:
    with transaction.atomic():
        ProcessInstance.objects.select_for_update().get(pk=runs[0].instance_id)
        StepRun.objects.select_for_update().get(pk=runs[3].pk)
        changes = [change(run) for run in runs]
        [committed] = together(lambda: group_commit.commit_changes(changes))
    found = committed.written
    assert found == [False, True, True, False, True]
    assert written(runs) == found


def test_changes_of_other_forms_go_beside_each_other(runs: list[StepRun]) -> None:
    """One of them ends its process, and one has a write that goes with none: it is sent by itself."""
    changes = [change(run) for run in runs]
    del changes[1][2], changes[2][2]
    alone = Statement("SELECT 1", [], changes[0][0].touched)
    found = group_commit.commit_changes([*changes[:4], [*changes[4], alone]]).written
    assert found[:4] == [True] * 4
    rows = ProcessInstance.objects.filter(revision=4, name="grouped")
    assert rows.count() == 4 + found[4]
    assert StepRun.objects.filter(node="next").count() == 2 + found[4]


def test_new_rows_have_their_keys_in_the_order_written(runs: list[StepRun]) -> None:
    """So that of two waits the one that is written first is the older one."""
    changes = [change(run) for run in runs]
    for run, writes in zip(runs, changes, strict=True):
        more = [
            StepRun(instance_id=run.instance_id, node=node, kind="wait", started_at=NOW)
            for node in ("b", "a", "c")
        ]
        writes.insert(3, step_runs.insert(*more))
    assert group_commit.commit_changes(changes).written == [True] * 5
    for run in runs:
        rows = StepRun.objects.filter(instance=run.instance_id).order_by("pk")
        assert [row.node for row in rows][1:] == ["next", "b", "a", "c"]


RESULTS: tuple[Any, ...] = (
    {"text": "\U0001f600 ' \" \\ \u2028 %s {} $1", "deep": {"": [[], {}, [None]]}},
    [0, -1, 10**30, 0.1, 1e-7, True, None],
    "text",
    None,
    [],
)
COLUMNS: tuple[dict[str, Any], ...] = (
    {"remaining": timedelta(days=-3, microseconds=7), "wake_at": NOW, "redo": True},
    {"remaining": None, "wake_at": None, "redo": False},
)


def test_values_of_every_kind_arrive_as_if_sent_singly(runs: list[StepRun]) -> None:
    def changes() -> Iterator[list[Statement]]:
        for run, result, columns in zip(runs, RESULTS, cycle(COLUMNS), strict=False):
            writes = change(run, result)
            for name, value in columns.items():
                setattr(following(writes), name, value)
            yield writes

    def sent_singly() -> None:
        for one in changes():
            send(one)

    tables = (StepRun, Checkpoint, ProcessInstance)
    found = left_by(lambda: group_commit.commit_changes([*changes()]), tables)
    assert found == left_by(sent_singly, tables)
    results = [row["result"] for row in found["StepRun"] if row["node"] != "next"]
    assert sorted(results, key=repr) == sorted(RESULTS, key=repr)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite takes any text")
@pytest.mark.parametrize("alike", [True, False])
def test_what_the_database_refuses_is_the_matter_of_its_form_alone(
    alike: bool, runs: list[StepRun]
) -> None:
    """All of one form leave nothing; others are written, and known to be, those before it and those behind it."""
    changes = [change(run) for run in runs]
    following(changes[2]).node = "n" * 101
    forms = () if alike else ((2, "summary"), (3, "summary"), (4, "step"))
    for number, column in forms:
        where = {"id": runs[number].instance_id, "revision": 3}
        changes[number][0] = instances.update({"revision": 4, column: "next"}, where)
    found = group_commit.commit_changes(changes)
    of_others = [] if alike else [0, 1, 4]
    assert found.written == written(runs) == [one in of_others for one in range(5)]
    assert isinstance(found.refusal, DatabaseError)
    assert "too long" in str(found.refusal)
