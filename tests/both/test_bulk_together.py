"""S6.5: items that go together are retried by one statement and one commit, each exactly as if by itself."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from orchestrator import Permanent
from orchestrator.engine.bulk import pressing, running
from orchestrator.engine.operations import escalate, retry
from orchestrator.engine.storage import group_commit
from orchestrator.engine.storage.group_commit import Committed
from orchestrator.engine.storage.tables import bulk_operations
from orchestrator.models import (
    Checkpoint,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    Status,
    StepRun,
)
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import faults
from tests.apps.compensation.processes import Choice
from tests.apps.patterns.desk import finished
from tests.apps.process_managers.failures import Failures, fail
from tests.services.bulk import (
    a_moment,
    asked,
    begun,
    frozen,
    slice_of,
    verdicts,
    worked_on,
)

__all__ = ["fail", "known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

FAILED = {"status": "failed"}


@pytest.fixture
def pressed_singly(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the targets that are pressed by themselves."""
    found: list[object] = []
    as_it_was = pressing.press

    def press(operation: Any, item: Any, actor: Any) -> None:
        found.append(item.target)
        as_it_was(operation, item, actor)

    monkeypatch.setattr(running, "press", press)
    return found


def told(process: ProcessInstance) -> dict[str, Any]:
    """Return what a retry has written about a process, without keys and times."""
    process.refresh_from_db()
    row = OperatorAction.objects.get(instance=process, action="retry")
    point = Checkpoint.objects.filter(instance=process).latest("revision")
    [command] = IssuedCommand.objects.filter(instance=process, error__gt="")
    [incident] = Incident.objects.filter(instance=process)
    revision = process.revision
    return {
        "process": (process.status, process.step, process.finished_at),
        "row": (row.actor_id, row.reason, row.result, row.detail, row.address),
        "before": row.before | {"revision": row.before["revision"] - revision},
        "after": row.after | {"revision": row.after["revision"] - revision},
        "seen": row.expected_revision is not None,
        "point": (point.revision - revision, point.steps, point.status, point.data),
        "cause": point.cause == f"operator:{row.key}",
        "at": row.at == incident.resolved_at == point.at == process.changed_at,
        "command": (command.status, command.attempt, command.owner),
        "due": command.wake_at is not None and command.finished_at is None,
        "incident": incident.resolution,
    }


def test_s6_5_what_goes_together_is_written_as_if_by_itself(
    fail: Failures, operator: User, pressed_singly: list[object]
) -> None:
    *several, alone = fail(4)
    request = asked(operator)
    seen = ProcessInstance.objects.get(pk=alone.pk).revision
    retry(alone.pk, request=type(request)(operator, request.key, request.reason, seen))
    operation = slice_of(frozen(begun(operator, FAILED, 3)))

    assert verdicts(operation) == {"tried": 3}
    assert pressed_singly == []
    expected = told(alone)
    for process in several:
        found = told(process)
        assert found["point"][3].keys() == expected["point"][3].keys()
        found["point"] = found["point"][:3]
        assert found == expected | {"point": expected["point"][:3]}
    rows = OperatorAction.objects.filter(bulk=operation, action="retry")
    assert rows.count() == 3
    assert verdicts(worked_on(operation)) == {"done": 3}


def told_of_steps(process: ProcessInstance) -> dict[str, Any]:
    """Return what a retry has written about a workflow, without keys and times."""
    process.refresh_from_db()
    row = OperatorAction.objects.get(instance=process, action="retry")
    point = Checkpoint.objects.filter(instance=process).latest("revision")
    run = StepRun.objects.get(instance=process, finished_at=None)
    incident = Incident.objects.get(instance=process)
    revision = process.revision
    return {
        "process": (process.status, process.step, process.open_steps),
        "before": row.before | {"revision": row.before["revision"] - revision},
        "after": row.after | {"revision": row.after["revision"] - revision},
        "point": (point.revision - revision, point.steps, point.status, point.data),
        "cause": point.cause == f"operator:{row.key}",
        "at": row.at == incident.resolved_at == point.at == run.wake_at,
        "run": (run.status, run.attempt, run.owner, run.declined, run.blocked),
        "incident": incident.resolution,
    }


def test_s6_5_workflows_that_go_together_are_written_as_if_by_themselves(
    trips: None, operator: User, pressed_singly: list[object]
) -> None:
    faults["plan"] = Permanent("no line")
    *several, alone = [finished(Choice) for _ in range(3)]
    faults.clear()
    a_moment()
    retry(alone.pk, request=asked(operator))
    operation = slice_of(frozen(begun(operator, FAILED, 2)))

    assert verdicts(operation) == {"tried": 2}
    assert pressed_singly == []
    for process in several:
        assert told_of_steps(process) == told_of_steps(alone)
    assert verdicts(worked_on(operation)) == {"done": 2}
    assert {one.status for one in ProcessInstance.objects.all()} == {"completed"}


def test_s6_5_what_has_changed_is_told_from_the_others(
    fail: Failures, operator: User, pressed_singly: list[object]
) -> None:
    first, *others = fail(4)
    operation = frozen(begun(operator, FAILED, 4))
    escalate(first.pk, request=asked(operator))
    slice_of(operation)

    assert verdicts(operation) == {"skipped": 1, "tried": 3}
    assert pressed_singly == [first.pk]
    statuses = ProcessInstance.objects.filter(pk__in=[one.pk for one in others])
    assert {one.status for one in statuses} == {Status.WAITING}


def test_s6_5_what_the_database_refuses_together_is_done_one_by_one(
    fail: Failures,
    operator: User,
    pressed_singly: list[object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail(3)
    operation = frozen(begun(operator, FAILED, 3))

    def refused(changes: Any) -> Committed:
        return Committed([False] * len(changes))

    monkeypatch.setattr(group_commit, "commit", refused)
    slice_of(operation)

    assert len(pressed_singly) == 3
    assert verdicts(operation) == {"tried": 3}


def test_s6_5_a_worker_killed_between_commit_and_verdict_has_acted_once(
    fail: Failures, operator: User
) -> None:
    fail(3)
    operation = frozen(begun(operator, FAILED, 3))
    [claimed] = bulk_operations.claim("default", "killed", 1, 10)
    lost = running.Slice(claimed.work, float("inf"), lambda: False)
    lost._press()  # and is killed before it stores what came of it
    revisions = dict(ProcessInstance.objects.values_list("pk", "revision"))
    slice_of(operation)

    assert verdicts(operation) == {"tried": 3}
    assert dict(ProcessInstance.objects.values_list("pk", "revision")) == revisions
    assert OperatorAction.objects.filter(action="retry").count() == 3


def test_s6_5_a_slice_asks_as_much_for_twelve_as_for_three(
    fail: Failures, operator: User
) -> None:
    fail(15)
    numbers = []
    asked_of = list[str]()

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        asked_of.append(sql)  # as it was sent: of a prepared one the log has no text
        return execute(sql, *rest)

    for some in (3, 12):
        found = ProcessInstance.objects.filter(status=Status.FAILED).order_by("-pk")
        Incident.objects.filter(instance__in=found.values("pk")[:some]).update(
            fingerprint=f"of {some}"
        )
        about = {"cause": f"of {some}"}
        operation = frozen(begun(operator, about, some, selection="failures"))
        asked_of.clear()
        with connection.execute_wrapper(note):
            slice_of(operation)
        kept = "FROM orchestrator_definition"  # by a worker, once it has committed
        selected = [sql for sql in asked_of if sql.startswith("SELECT")]
        numbers.append(sum(kept not in sql for sql in selected))
        assert verdicts(operation) == {"tried": some}

    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("size", [1, 5])
def test_s6_5_any_number_gets_its_verdicts(
    size: int, fail: Failures, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "MOST", 4)
    fail(size)
    operation = worked_on(begun(operator, FAILED, size))

    assert verdicts(operation) == {"done": size}
