"""S6, one action on many: what was shown is frozen, done at a pace, and counted when it has really had its effect."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User

from orchestrator.engine.bulk import gathering, pressing, running
from orchestrator.engine.claims import leases
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import (
    Pace,
    cancel_bulk,
    escalate,
    outcomes,
    pause_bulk,
    repeat_bulk,
    resume_bulk,
    start_bulk,
)
from orchestrator.engine.storage.batch import database_now
from orchestrator.engine.storage.tables import bulk_operations
from orchestrator.exceptions import (
    OperationRefused,
    PermissionMissing,
    StaleRevision,
)
from orchestrator.models import (
    BulkItem,
    BulkOperation,
    BulkStatus,
    BulkVerdict,
    Incident,
    Lost,
    OperatorAction,
    ProcessInstance,
    Status,
)
from tests.apps.process_managers.desk import place
from tests.apps.process_managers.failures import Failures, accept, fail, refuse
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import BookCourier
from tests.conftest import OPERATOR_MAY, person
from tests.services.bulk import (
    AT_ONCE,
    a_moment,
    asked,
    begun,
    frozen,
    slice_of,
    verdicts,
    worked_on,
)

__all__ = ["fail"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

FAILED = {"status": "failed"}


class Killed(BaseException):
    """As if the worker were killed."""


def killed(*given: object) -> None:
    raise Killed


def lost_at(operation: BulkOperation) -> bool:
    """Have a worker die in the middle of a slice that begins items; whether the slice began any."""
    BulkOperation.objects.filter(pk=operation.pk).update(wake_at=database_now())
    [claimed] = bulk_operations.claim("default", "killed", 1, 10)
    slice = running.Slice(claimed.work, 10, lambda: False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(running, "gather", killed)
        patched.setattr(running.Slice, "_press", killed)
        try:
            slice.run()
        except Killed:
            work = leases.name_of(bulk_operations, operation.pk)
            leases.end(["killed"], in_hand={work: Lost.DIED})
            return True
    return False


# Freezing


def test_s6_1_what_matches_later_is_not_touched(fail: Failures, operator: User) -> None:
    known = fail(3)
    shown_at = database_now()
    [late] = fail(1)
    operation = worked_on(begun(operator, FAILED, 3, shown_at=shown_at))

    assert (operation.status, operation.total) == (BulkStatus.COMPLETED, 3)
    items = BulkItem.objects.values_list("process_id", flat=True)
    assert set(items) == {process.pk for process in known}
    late.refresh_from_db()
    assert late.status == Status.FAILED


def test_s6_1_an_operation_on_everything_is_refused(
    fail: Failures, operator: User
) -> None:
    fail(1)
    for about in ({}, {"status": ""}):
        with pytest.raises(OperationRefused, match="Say which first"):
            begun(operator, about, 1)

    assert not BulkOperation.objects.exists()


def test_s6_1_an_operation_on_nothing_is_refused(operator: User) -> None:
    for about in ({"status": "paused"}, FAILED):
        with pytest.raises(OperationRefused, match="Nothing matches"):
            begun(operator, about, 0 if about == FAILED else 1)


def test_s6_1_it_acts_on_no_more_than_was_shown(fail: Failures, operator: User) -> None:
    fail(3)
    operation = worked_on(begun(operator, FAILED, 2))

    assert (operation.status, operation.total) == (BulkStatus.PAUSED, 3)
    assert operation.detail == gathering.MORE
    assert verdicts(operation) == {"waiting": 3}
    assert not OperatorAction.objects.filter(action="retry").exists()


def test_s6_1_what_could_not_be_counted_waits_for_a_person(
    fail: Failures, operator: User
) -> None:
    fail(2)
    operation = worked_on(begun(operator, FAILED, 1, exact=False))
    assert (operation.status, operation.detail) == ("paused", gathering.UNCOUNTED)

    resume_bulk(operation.pk, request=asked(operator))
    assert worked_on(operation).done == 2


def test_s6_1_what_has_changed_before_it_was_frozen_is_left_out(
    fail: Failures, operator: User
) -> None:
    first, _other = fail(2)
    shown_at = database_now()
    a_moment()
    escalate(first.pk, request=asked(operator))
    operation = worked_on(begun(operator, FAILED, 2, shown_at=shown_at))

    assert (operation.total, operation.shown) == (1, 2)
    assert operation.status == BulkStatus.COMPLETED


def test_s6_1_nothing_left_to_freeze_ends_it(fail: Failures, operator: User) -> None:
    [only] = fail(1)
    operation = begun(operator, FAILED, 1)
    escalate(only.pk, request=asked(operator))
    worked_on(operation)

    assert (operation.status, operation.detail) == ("stopped", gathering.NONE_LEFT)
    assert operation.finished_at is not None


def test_s6_5_it_is_frozen_a_chunk_at_a_time(
    fail: Failures, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(5)
    monkeypatch.setattr(gathering, "CHUNK", 2)
    operation = begun(operator, FAILED, 5)
    seen = []
    while operation.status == BulkStatus.GATHERING:
        [claimed] = bulk_operations.claim("default", "one", 1, 10)
        running.run(claimed.work, 0)  # no time: one chunk and no more
        operation.refresh_from_db()
        seen.append(operation.total)

    assert seen == [2, 4, 5]
    assert worked_on(operation).done == 5


# Pace


def test_s6_2_samples_are_tried_first(fail: Failures, operator: User) -> None:
    fail(8)
    pace = Pace(samples=(1, 3), batch=2)
    operation = frozen(begun(operator, FAILED, 8, pace=pace))
    sizes = []
    while operation.status == BulkStatus.RUNNING:
        before = operation.waiting
        slice_of(operation)
        sizes.append(before - operation.waiting)
        if operation.tried:
            left = operation.waiting
            assert slice_of(operation).waiting == left  # before it is known what came
        drain()

    assert sizes == [1, 3, 2, 2, 0]
    assert operation.done == 8


def test_s6_2_it_stops_when_too_many_fail_again(
    fail: Failures, operator: User, handler: SetHandler
) -> None:
    fail(6)
    handler(BookCourier, refuse, after_commit=True)
    operation = worked_on(begun(operator, FAILED, 6, pace=Pace()))

    assert operation.status == BulkStatus.STOPPED
    assert operation.detail == "1 of 1 failed again, more than 5 percent"
    assert verdicts(operation) == {"failed": 1, "waiting": 5}


def test_s6_2_what_fails_is_counted_anew_after_it_is_resumed(
    fail: Failures, operator: User, handler: SetHandler
) -> None:
    fail(4)
    handler(BookCourier, refuse, after_commit=True)
    operation = worked_on(begun(operator, FAILED, 4, pace=Pace()))
    handler(BookCourier, accept, after_commit=True)
    resume_bulk(operation.pk, request=asked(operator))
    worked_on(operation)

    assert operation.status == BulkStatus.COMPLETED
    assert verdicts(operation) == {"failed": 1, "done": 3}


def test_s6_2_one_business_key_at_a_time(fail: Failures, operator: User) -> None:
    fail(3)
    operation = frozen(
        begun(operator, FAILED, 3, pace=Pace(samples=(), batch=10, per_key=1))
    )
    operation.items.update(key="same")
    most = 0
    while operation.status == BulkStatus.RUNNING:
        most = max(most, slice_of(operation).tried)
        drain()

    assert (most, operation.done) == (1, 3)


def test_s6_2_a_pace_out_of_bounds_is_refused(fail: Failures, operator: User) -> None:
    fail(1)
    for pace in (
        Pace(samples=(0,)),
        Pace(samples=(1,) * 6),
        Pace(batch=0),
        Pace(batch=1_001),
        Pace(rate=0),
        Pace(rate=float("nan")),
        Pace(per_key=0),
        Pace(stop_above=100),
    ):
        with pytest.raises(OperationRefused):
            begun(operator, FAILED, 1, pace=pace)


# Verdicts


def test_s6_4_an_item_is_done_when_its_process_has_left_the_failed_state(
    fail: Failures, operator: User
) -> None:
    [only] = fail(1)
    operation = slice_of(frozen(begun(operator, FAILED, 1)))

    only.refresh_from_db()
    assert only.status == Status.WAITING  # the button was accepted
    assert not Incident.objects.open().exists()
    assert verdicts(operation) == {"tried": 1}
    assert verdicts(worked_on(operation)) == {"done": 1}


def test_s6_4_what_fails_again_has_failed_with_its_error(
    fail: Failures, operator: User, handler: SetHandler
) -> None:
    fail(1)
    handler(BookCourier, refuse, after_commit=True)
    operation = worked_on(begun(operator, FAILED, 1))

    item = operation.items.get()
    assert (item.verdict, item.detail) == (BulkVerdict.FAILED, "Permanent: no line")
    assert OperatorAction.objects.get(action="retry").result == "done"


@pytest.mark.parametrize("read", ["_at_work", "_failures_since", "_processes"])
def test_s6_4_what_fails_while_it_is_looked_at_is_never_done(
    read: str,
    fail: Failures,
    handler: SetHandler,
    operator: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its tables are read one after the other; it may fail again between any two of them."""
    fail(1)
    handler(BookCourier, refuse, after_commit=True)
    operation = slice_of(frozen(begun(operator, FAILED, 1)))
    as_it_was = getattr(outcomes, read)

    def then_it_fails(tried: object) -> object:
        found = as_it_was(tried)
        drain()
        return found

    monkeypatch.setattr(outcomes, read, then_it_fails)
    operation = slice_of(operation)
    assert operation.done == 0
    monkeypatch.undo()

    assert verdicts(worked_on(operation)) == {"failed": 1}


def test_s6_4_what_is_between_attempts_is_not_done(
    fail: Failures, operator: User, handler: SetHandler
) -> None:
    def hang_up(command: object) -> None:
        raise ConnectionError("no line")

    fail(1)
    handler(BookCourier, hang_up, after_commit=True)
    operation = frozen(begun(operator, FAILED, 1))
    for _ in range(3):
        slice_of(operation)
        drain()

    assert ProcessInstance.objects.get().status == Status.RETRYING
    assert verdicts(operation) == {"tried": 1}
    assert operation.status == BulkStatus.RUNNING


def test_s6_3_what_has_changed_since_it_was_frozen_is_skipped(
    fail: Failures, operator: User
) -> None:
    first, _other = fail(2)
    operation = frozen(begun(operator, FAILED, 2))
    escalate(first.pk, request=asked(operator))
    worked_on(operation)

    assert verdicts(operation) == {"skipped": 1, "done": 1}
    assert "escalate" in operation.items.get(process_id=first.pk).detail
    assert operation.status == BulkStatus.COMPLETED


def test_s6_3_every_item_has_an_audit_row_of_its_own(
    fail: Failures, operator: User
) -> None:
    processes = fail(3)
    operation = worked_on(begun(operator, FAILED, 3))

    rows = OperatorAction.objects.filter(action="retry", bulk=operation)
    assert {row.instance_id for row in rows} == {one.pk for one in processes}
    assert {(row.actor, row.reason) for row in rows} == {(operator, "the line is back")}
    assert OperatorAction.objects.filter(action="start_bulk").count() == 1


def test_s6_5_a_killed_worker_has_acted_once(fail: Failures, operator: User) -> None:
    fail(3)
    operation = frozen(begun(operator, FAILED, 3))
    [claimed] = bulk_operations.claim("default", "killed", 1, 10)
    lost = running.Slice(claimed.work, float("inf"), lambda: False)
    lost._press()  # and is killed before it stores what came of it
    assert OperatorAction.objects.filter(bulk=operation, action="retry").count() == 3
    BulkOperation.objects.update(wake_at=database_now())
    worked_on(operation)

    assert verdicts(operation) == {"done": 3}
    assert OperatorAction.objects.filter(bulk=operation, action="retry").count() == 3


def test_s6_5_a_slice_of_which_others_took_the_operation_stores_nothing(
    fail: Failures, operator: User
) -> None:
    fail(2)
    operation = frozen(begun(operator, FAILED, 2))
    [slow] = bulk_operations.claim("default", "slow", 1, 10)
    BulkOperation.objects.update(wake_at=database_now())
    [other] = bulk_operations.claim("default", "other", 1, 10)
    running.run(slow.work, 10)
    assert verdicts(operation) == {"waiting": 2}

    running.run(other.work, 10)
    operation.refresh_from_db()
    assert (operation.tried, verdicts(operation)) == (2, {"tried": 2})


def test_one_whose_workers_are_lost_again_and_again_stops_until_it_is_resumed(
    fail: Failures, operator: User
) -> None:
    fail(2)
    operation = frozen(begun(operator, FAILED, 2))
    deaths = sum(lost_at(operation) for _ in range(20))
    assert deaths == running.DEATHS

    operation.refresh_from_db()
    assert (operation.status, operation.wake_at) == ("stopped", None)
    assert f"killed in each of the last {deaths} attempts" in operation.detail
    assert verdicts(operation) == {"waiting": 2}
    resume_bulk(operation.pk, request=asked(operator))
    assert worked_on(operation).status == "completed"


def test_one_that_ends_its_workers_is_left_out_and_the_others_are_begun(
    fail: Failures, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(5)
    operation = frozen(begun(operator, FAILED, 5, pace=AT_ONCE))
    deadly = operation.items.order_by("pk")[2]
    press, deaths = pressing.press, 0

    def or_killed(one: BulkOperation, item: BulkItem, by: Any) -> None:
        if item.pk == deadly.pk:
            raise Killed
        press(one, item, by)

    monkeypatch.setattr(running, "press", or_killed)
    monkeypatch.setattr(running, "press_together", lambda one, items, by: items)
    for _ in range(2 * running.DEATHS):
        BulkOperation.objects.filter(wake_at__isnull=False).update(
            wake_at=database_now()
        )
        if not (claimed := bulk_operations.claim("default", "one", 1, 10)):
            break
        try:
            running.run(claimed[0].work, 10)
        except Killed:
            work = leases.name_of(bulk_operations, operation.pk)
            leases.end(["one"], in_hand={work: Lost.DIED})
            deaths += 1
    assert deaths == running.DEATHS
    operation.refresh_from_db()
    assert (operation.status, operation.refused) == ("stopped", 1)
    assert operation.items.get(verdict="refused").pk == deadly.pk

    resume_bulk(operation.pk, request=asked(operator))
    assert worked_on(operation).status == "completed"
    assert verdicts(operation) == {"refused": 1, "done": 4}


def test_one_that_gathers_stops_when_its_workers_are_lost_again_and_again(
    fail: Failures, operator: User
) -> None:
    fail(2)
    operation = begun(operator, FAILED, 2)
    assert sum(lost_at(operation) for _ in range(20)) == running.DEATHS
    operation.refresh_from_db()
    assert (operation.status, operation.frozen_at) == ("stopped", None)

    resume_bulk(operation.pk, request=asked(operator))
    assert worked_on(operation).status == "completed"


def test_lost_workers_do_not_stop_one_that_gets_on_in_between(
    fail: Failures, operator: User
) -> None:
    fail(running.DEATHS + 1)
    one_by_one = Pace(samples=(), batch=1, stop_above=None)
    operation = begun(operator, FAILED, running.DEATHS + 1, pace=one_by_one)
    frozen(operation)
    for _ in range(running.DEATHS + 1):
        assert lost_at(operation)
        slice_of(operation)
    assert worked_on(operation).status == "completed"


# People


def test_it_acts_once_however_often_it_is_pressed(
    fail: Failures, operator: User
) -> None:
    fail(2)
    key = uuid4()
    first = begun(operator, FAILED, 2, key=key)
    second = begun(operator, FAILED, 2, key=key)
    worked_on(first)

    assert first.pk == second.pk
    assert OperatorAction.objects.filter(action="retry").count() == 2


@pytest.mark.parametrize("lacks", ["retry_processinstance", "run_bulkoperation"])
def test_who_may_not_retry_or_act_on_many_is_refused(
    lacks: str, fail: Failures, operator: User
) -> None:
    fail(1)
    operator.user_permissions.remove(Permission.objects.get(codename=lacks))
    again = User.objects.get(pk=operator.pk)
    assert bool(start_bulk.forbidden(again)) == (lacks == "run_bulkoperation")
    with pytest.raises(PermissionMissing):
        begun(again, FAILED, 1)


def test_it_stops_when_its_actor_may_not_go_on(fail: Failures) -> None:
    fail(2)
    losses: list[Callable[[User], object]] = [
        lambda actor: User.objects.filter(pk=actor.pk).update(is_active=False),
        lambda actor: actor.user_permissions.clear(),
        lambda actor: actor.delete(),
    ]
    for number, lost in enumerate(losses):
        actor = person(f"operator {number}", *OPERATOR_MAY)
        operation = frozen(begun(actor, FAILED, 2))
        lost(actor)
        worked_on(operation)

        assert operation.status == BulkStatus.STOPPED
        assert f"operator {number}" in operation.detail
        assert verdicts(operation) == {"waiting": 2}


def test_s6_3_a_paused_operation_waits_until_it_is_resumed(
    fail: Failures, operator: User
) -> None:
    fail(2)
    operation = frozen(begun(operator, FAILED, 2))
    pause_bulk(operation.pk, request=asked(operator))
    worked_on(operation)
    assert verdicts(operation) == {"waiting": 2}
    with pytest.raises(StaleRevision, match="This operation is paused"):
        pause_bulk(operation.pk, request=asked(operator))

    resume_bulk(operation.pk, request=asked(operator))
    assert verdicts(worked_on(operation)) == {"done": 2}


def test_s6_3_one_that_is_paused_while_it_gathers_goes_on_gathering(
    fail: Failures, operator: User
) -> None:
    fail(2)
    operation = begun(operator, FAILED, 2)
    pause_bulk(operation.pk, request=asked(operator))
    assert worked_on(operation).total == 0

    resume_bulk(operation.pk, request=asked(operator))
    assert verdicts(worked_on(operation)) == {"done": 2}


def test_s6_3_a_cancelled_operation_still_looks_at_what_is_under_way(
    fail: Failures, operator: User
) -> None:
    fail(3)
    operation = frozen(begun(operator, FAILED, 3, pace=Pace(samples=(1,))))
    slice_of(operation)
    cancel_bulk(operation.pk, request=asked(operator))
    operation.refresh_from_db()
    assert operation.finished_at is None
    worked_on(operation)

    assert verdicts(operation) == {"done": 1, "waiting": 2}
    assert operation.status == BulkStatus.CANCELLED
    assert operation.finished_at is not None


def test_pressing_pause_twice_with_one_key_is_one_press(
    fail: Failures, operator: User
) -> None:
    fail(1)
    operation = begun(operator, FAILED, 1)
    request = asked(operator)
    first = pause_bulk(operation.pk, request=request)

    assert pause_bulk(operation.pk, request=request).pk == first.pk


def test_s6_3_what_failed_is_done_once_more(
    fail: Failures, operator: User, handler: SetHandler
) -> None:
    fail(2)
    handler(BookCourier, refuse, after_commit=True)
    operation = worked_on(begun(operator, FAILED, 2))
    handler(BookCourier, accept, after_commit=True)
    again = repeat_bulk(operation.pk, request=asked(operator))
    worked_on(again)

    assert verdicts(operation) == {"failed": 2}
    assert (again.again_of, verdicts(again)) == (operation, {"done": 2})
    with pytest.raises(OperationRefused, match="None of it has failed again"):
        repeat_bulk(again.pk, request=asked(operator))


def test_s6_3_a_key_does_one_operation_once_more_alone(
    fail: Failures, operator: User, handler: SetHandler
) -> None:
    fail(1)
    handler(BookCourier, refuse, after_commit=True)
    one, two = (worked_on(begun(operator, FAILED, 1)) for _ in range(2))
    press = asked(operator)
    again = repeat_bulk(one.pk, request=press)

    with pytest.raises(OperationRefused, match="used for another action"):
        repeat_bulk(two.pk, request=press)
    assert repeat_bulk(one.pk, request=press) == again


def test_what_is_told_to_the_action_goes_with_it(operator: User) -> None:
    place("P-1")
    a_moment()
    operation = begun(
        operator, {"status": "waiting"}, 1, action="assign", given=["operator"]
    )
    worked_on(operation)

    assert ProcessInstance.objects.get().owner == operator
    assert operation.done == 1


def test_cancelled_processes_are_done_when_they_have_ended(
    fail: Failures, operator: User
) -> None:
    fail(2)
    operation = worked_on(begun(operator, FAILED, 2, action="cancel", pace=AT_ONCE))

    assert verdicts(operation) == {"done": 2}
    assert {one.status for one in ProcessInstance.objects.all()} == {"cancelled"}
