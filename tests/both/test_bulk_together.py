"""S6.5: items that go together are retried by one statement and one commit.

That each is written exactly as if by itself is shown by `test_together_as_singly`.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User

from orchestrator.engine.operations import escalate
from orchestrator.engine.operations.bulk import single_press, slices
from orchestrator.engine.sql import group_commit
from orchestrator.engine.sql.group_commit import GroupCommit
from orchestrator.engine.sql.tables import bulk_operations
from orchestrator.models import Incident, OperatorAction, ProcessInstance, Status
from tests.apps.process_managers.failures import Failures, fail
from tests.services.bulk import asked, begun, frozen, slice_of, verdicts, worked_on
from tests.services.noting import noting

__all__ = ["fail"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

FAILED = {"status": "failed"}


@pytest.fixture
def pressed_singly(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the targets that are pressed by themselves."""
    found: list[object] = []
    as_it_was = single_press.press_item

    def press(operation: Any, item: Any, actor: Any) -> None:
        found.append(item.target)
        as_it_was(operation, item, actor)

    monkeypatch.setattr(slices, "press_item", press)
    return found


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

    def refused(changes: Any) -> GroupCommit:
        return GroupCommit([False] * len(changes))

    monkeypatch.setattr(group_commit, "commit_changes", refused)
    slice_of(operation)

    assert len(pressed_singly) == 3
    assert verdicts(operation) == {"tried": 3}


def test_s6_5_a_worker_killed_between_commit_and_verdict_has_acted_once(
    fail: Failures, operator: User
) -> None:
    fail(3)
    operation = frozen(begun(operator, FAILED, 3))
    [claimed] = bulk_operations.claim("default", "killed", 1, 10)
    lost = slices.Slice(claimed.work, float("inf"), lambda: False)
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
    for some in (3, 12):
        found = ProcessInstance.objects.filter(status=Status.FAILED).order_by("-pk")
        Incident.objects.filter(instance__in=found.values("pk")[:some]).update(
            fingerprint=f"of {some}"
        )
        about = {"cause": f"of {some}"}
        operation = frozen(begun(operator, about, some, selection="failures"))
        with noting() as asked_of:
            slice_of(operation)
        kept = "FROM orchestrator_definition"  # by a worker, once it has committed
        selected = [sql for sql, _ in asked_of if sql.startswith("SELECT")]
        numbers.append(sum(kept not in sql for sql in selected))
        assert verdicts(operation) == {"tried": some}

    assert numbers[0] == numbers[1]


@pytest.mark.parametrize("size", [1, 5])
def test_s6_5_any_number_gets_its_verdicts(
    size: int, fail: Failures, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "MOST", 4)
    fail(size)
    operation = worked_on(begun(operator, FAILED, size))

    assert verdicts(operation) == {"done": size}
