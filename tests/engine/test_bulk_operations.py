"""S6, one action on many: what was shown is frozen, done at a pace, and counted when it has really had its effect."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User

from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import (
    Pace,
    cancel_bulk,
    escalate,
    pause_bulk,
    repeat_bulk,
    resume_bulk,
    start_bulk,
)
from orchestrator.engine.operations.bulk import gathering, single_press, slices
from orchestrator.engine.operations.processes import outcomes
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.tables import bulk_operations
from orchestrator.engine.work import leases
from orchestrator.exceptions import OperationRefused, PermissionMissing, StaleRevision
from orchestrator.models import (
    BulkItem,
    BulkOperation,
    BulkStatus,
    Incident,
    Lost,
    OperatorAction,
    ProcessInstance,
)
from tests.apps.process_managers.desk import place
from tests.apps.process_managers.failures import Failures, accept, fail, refuse
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import BookCourier
from tests.conftest import OPERATOR_MAY, person
from tests.services.asking import asked
from tests.services.bulk import a_moment, begun, frozen, slice_of, verdicts, worked_on
from tests.services.doing import did, fresh, raising, refused

__all__ = ["fail"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

FAILED = {"status": "failed"}


Retrying = Callable[..., BulkOperation]
Couriers = Callable[[Callable[..., None]], None]


def retry_all(shown: int, about: dict[str, Any] = FAILED, **more: Any) -> BulkOperation:
    """Begin to have all tried again that have failed, of which the page shows so many."""
    return begun(asked().actor, about, shown, **more)


@pytest.fixture
def retrying(fail: Failures, handler: SetHandler) -> Retrying:
    """Return a function that has so many processes fail, and begins to have them tried again: by other couriers."""

    def begin(
        number: int, couriers: Callable[..., None] = accept, **more: Any
    ) -> BulkOperation:
        fail(number)
        handler(BookCourier, couriers, after_commit=True)
        return retry_all(number, **more)

    return begin


@pytest.fixture
def couriers(handler: SetHandler) -> Couriers:
    """Return what tells couriers what to do from now on."""
    return partial(handler, BookCourier, after_commit=True)


def stands(operation: BulkOperation) -> tuple[str, dict[str, int]]:
    """Return how an operation stands after it was worked on, and its items' verdicts."""
    return worked_on(operation).status, verdicts(operation)


def retries() -> int:
    return OperatorAction.objects.filter(action="retry").count()


class Killed(BaseException):
    """As if the worker were killed."""


def killed(*given: object) -> None:
    raise Killed


def dies(operation: BulkOperation, slice: Callable[[], object]) -> bool:
    """Whether a slice of it has the worker killed, whose supervisor says so then."""
    try:
        slice()
    except Killed:
        work = leases.work_name(operation)
        leases.end_leases(["killed"], running={work: Lost.DIED})
        return True
    return False


def claimed(owner: str = "killed") -> BulkOperation:
    """Have a worker take the operation, whoever has it."""
    BulkOperation.objects.update(wake_at=database_now())
    [found] = bulk_operations.claim("default", owner, 1, 10)
    return found.work


def lost_at(operation: BulkOperation) -> bool:
    """Have a worker die in the middle of a slice that begins items; whether the slice began any."""
    slice = slices.Slice(claimed(), 10, lambda: False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(slices, "gather_items", killed)
        patched.setattr(slices.Slice, "_press", killed)
        return dies(operation, slice.run)


# Freezing


def test_s6_1_what_matches_later_is_not_touched(fail: Failures) -> None:
    known = fail(3)
    shown_at = database_now()
    [late] = fail(1)
    operation = worked_on(retry_all(3, shown_at=shown_at))

    assert (operation.status, operation.total) == ("completed", 3)
    items = BulkItem.objects.values_list("process_id", flat=True)
    assert set(items) == {process.pk for process in known}
    assert fresh(late).status == "failed"


def test_s6_1_an_operation_on_everything_is_refused(fail: Failures) -> None:
    fail(1)
    for about in ({}, {"status": ""}):
        with pytest.raises(OperationRefused, match="Say which first"):
            retry_all(1, about)

    assert not BulkOperation.objects.exists()


def test_s6_1_an_operation_on_nothing_is_refused() -> None:
    for shown, about in ((1, {"status": "paused"}), (0, FAILED)):
        with pytest.raises(OperationRefused, match="Nothing matches"):
            retry_all(shown, about)


def test_s6_1_it_acts_on_no_more_than_was_shown(fail: Failures) -> None:
    fail(3)
    operation = retry_all(2)

    assert stands(operation) == ("paused", {"waiting": 3})
    assert (operation.total, operation.detail) == (3, gathering.MORE)
    assert retries() == 0


def test_s6_1_what_could_not_be_counted_waits_for_a_person(fail: Failures) -> None:
    fail(2)
    operation = worked_on(retry_all(1, exact=False))
    assert (operation.status, operation.detail) == ("paused", gathering.UNCOUNTED)

    did(resume_bulk, operation)
    assert worked_on(operation).done == 2


def test_s6_1_what_has_changed_before_it_was_frozen_is_left_out(fail: Failures) -> None:
    first, _other = fail(2)
    shown_at = database_now()
    a_moment()
    did(escalate, first)
    operation = worked_on(retry_all(2, shown_at=shown_at))

    found = operation.status, operation.total, operation.shown
    assert found == ("completed", 1, 2)


def test_s6_1_nothing_left_to_freeze_ends_it(retrying: Retrying) -> None:
    operation = retrying(1)
    did(escalate, ProcessInstance.objects.get())
    worked_on(operation)

    assert (operation.status, operation.detail) == ("stopped", gathering.NONE_LEFT)
    assert operation.finished_at is not None


def test_s6_5_it_is_frozen_a_chunk_at_a_time(
    retrying: Retrying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "CHUNK", 2)
    operation, seen = retrying(5), []
    while operation.status == BulkStatus.GATHERING:
        slices.run_slice(claimed(), 0)  # no time: one chunk and no more
        seen.append(fresh(operation).total)

    assert seen == [2, 4, 5]
    assert worked_on(operation).done == 5


# Pace


def test_s6_2_samples_are_tried_first(retrying: Retrying) -> None:
    operation = frozen(retrying(8, pace=Pace(samples=(1, 3), batch=2)))
    sizes = []
    while operation.status == BulkStatus.RUNNING:
        before = operation.waiting
        slice_of(operation)
        sizes.append(before - operation.waiting)
        if operation.tried:
            left = operation.waiting
            assert slice_of(operation).waiting == left  # before it is known what came
        drain()

    assert (sizes, operation.done) == ([1, 3, 2, 2, 0], 8)


def test_s6_2_too_many_failures_stop_it(retrying: Retrying, couriers: Couriers) -> None:
    operation = retrying(6, refuse, pace=Pace())
    assert stands(operation) == ("stopped", {"failed": 1, "waiting": 5})
    assert operation.detail == "1 of 1 failed again, more than 5 percent"

    couriers(accept)
    did(resume_bulk, operation)
    assert stands(operation) == ("completed", {"failed": 1, "done": 5})


def test_s6_2_one_business_key_at_a_time(retrying: Retrying) -> None:
    operation = frozen(retrying(3, pace=Pace(samples=(), batch=10, per_key=1)))
    operation.items.update(key="same")
    most = 0
    while operation.status == BulkStatus.RUNNING:
        most = max(most, slice_of(operation).tried)
        drain()

    assert (most, operation.done) == (1, 3)


def test_s6_2_a_pace_out_of_bounds_is_refused(fail: Failures) -> None:
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
            retry_all(1, pace=pace)


# Verdicts


def test_s6_4_an_item_is_done_when_its_process_goes_on(retrying: Retrying) -> None:
    operation = slice_of(frozen(retrying(1)))

    # The button was accepted.
    assert ProcessInstance.objects.get().status == "waiting"
    assert not Incident.objects.open().exists()
    assert verdicts(operation) == {"tried": 1}
    assert verdicts(worked_on(operation)) == {"done": 1}


def test_s6_4_what_fails_again_has_failed_with_its_error(retrying: Retrying) -> None:
    operation = retrying(1, refuse)
    item = worked_on(operation).items.get()

    assert (item.verdict, item.detail) == ("failed", "Permanent: no line")
    assert OperatorAction.objects.get(action="retry").result == "done"


@pytest.mark.parametrize("read", ["_at_work", "_failures_since", "_processes"])
def test_s6_4_what_fails_while_it_is_looked_at_is_never_done(
    read: str, retrying: Retrying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are read one after the other; it may fail again between any two of them."""
    operation = slice_of(frozen(retrying(1, refuse)))
    as_it_was = getattr(outcomes, read)

    def then_it_fails(tried: object) -> object:
        found = as_it_was(tried)
        drain()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(outcomes, read, then_it_fails)
        assert slice_of(operation).done == 0

    assert verdicts(worked_on(operation)) == {"failed": 1}


def test_s6_4_what_is_between_attempts_is_not_done(retrying: Retrying) -> None:
    operation = frozen(retrying(1, raising(ConnectionError("no line"))))
    for _ in range(3):
        slice_of(operation)
        drain()

    assert ProcessInstance.objects.get().status == "retrying"
    assert (operation.status, verdicts(operation)) == ("running", {"tried": 1})


def test_s6_3_what_has_changed_since_it_was_frozen_is_skipped(fail: Failures) -> None:
    first, _other = fail(2)
    operation = frozen(retry_all(2))
    did(escalate, first)

    assert stands(operation) == ("completed", {"skipped": 1, "done": 1})
    assert "escalate" in operation.items.get(process_id=first.pk).detail


def test_s6_3_every_item_has_an_audit_row(fail: Failures, operator: User) -> None:
    processes = fail(3)
    operation = worked_on(retry_all(3))

    rows = OperatorAction.objects.filter(action="retry", bulk=operation)
    assert {row.instance_id for row in rows} == {one.pk for one in processes}
    assert {(row.actor, row.reason) for row in rows} == {(operator, "the line is back")}
    assert OperatorAction.objects.filter(action="start_bulk").count() == 1


def test_s6_5_a_slice_that_others_took_over_stores_nothing(retrying: Retrying) -> None:
    operation = frozen(retrying(2))
    slow, other = claimed("slow"), claimed("other")
    slices.run_slice(slow, 10)
    assert verdicts(operation) == {"waiting": 2}

    slices.run_slice(other, 10)
    assert (fresh(operation).tried, verdicts(operation)) == (2, {"tried": 2})


@pytest.mark.parametrize("gathers", [False, True])
def test_one_that_loses_its_workers_stops(gathers: bool, retrying: Retrying) -> None:
    operation = retrying(2)
    if not gathers:
        frozen(operation)
    deaths = sum(lost_at(operation) for _ in range(20))
    assert deaths == slices.DEATHS

    assert (fresh(operation).status, operation.wake_at) == ("stopped", None)
    assert f"killed in each of the last {deaths} attempts" in operation.detail
    assert (operation.frozen_at is None) == gathers
    assert verdicts(operation) == ({} if gathers else {"waiting": 2})
    did(resume_bulk, operation)
    assert worked_on(operation).status == "completed"


def test_one_that_ends_its_workers_is_left_out_and_the_others_are_begun(
    retrying: Retrying, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = frozen(retrying(5))
    deadly = operation.items.order_by("pk")[2]
    press, deaths = single_press.press_item, 0

    def or_killed(one: BulkOperation, item: BulkItem, by: Any) -> None:
        if item.pk == deadly.pk:
            raise Killed
        press(one, item, by)

    monkeypatch.setattr(slices, "press_item", or_killed)
    monkeypatch.setattr(slices, "press_together", lambda one, items, by: items)
    while fresh(operation).wake_at is not None and deaths < 2 * slices.DEATHS:
        deaths += dies(operation, partial(slices.run_slice, claimed(), 10))
    assert deaths == slices.DEATHS
    assert (operation.status, operation.refused) == ("stopped", 1)
    assert operation.items.get(verdict="refused").pk == deadly.pk

    did(resume_bulk, operation)
    assert stands(operation) == ("completed", {"refused": 1, "done": 4})


def test_lost_workers_do_not_stop_what_gets_on_in_between(retrying: Retrying) -> None:
    one_by_one = Pace(samples=(), batch=1, stop_above=None)
    operation = frozen(retrying(slices.DEATHS + 1, pace=one_by_one))
    for _ in range(slices.DEATHS + 1):
        assert lost_at(operation)
        slice_of(operation)
    assert worked_on(operation).status == "completed"


# People


def test_it_acts_once_however_often_it_is_pressed(fail: Failures) -> None:
    fail(2)
    key = uuid4()
    first, second = retry_all(2, key=key), retry_all(2, key=key)
    worked_on(first)

    assert (first.pk, retries()) == (second.pk, 2)
    third, key = retry_all(2, {"status": "waiting"}, action="cancel"), uuid4()
    pauses = [did(pause_bulk, third, key=key).pk for _ in range(2)]
    assert pauses[0] == pauses[1]


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

        assert stands(operation) == ("stopped", {"waiting": 2})
        assert f"operator {number}" in operation.detail


def test_s6_3_a_paused_operation_waits_until_it_is_resumed(retrying: Retrying) -> None:
    operation = frozen(retrying(2))
    did(pause_bulk, operation)
    assert stands(operation) == ("paused", {"waiting": 2})
    refused("This operation is paused", pause_bulk, operation, error=StaleRevision)

    did(resume_bulk, operation)
    assert stands(operation) == ("completed", {"done": 2})


def test_s6_3_one_paused_while_it_gathers_goes_on_gathering(retrying: Retrying) -> None:
    operation = retrying(2)
    did(pause_bulk, operation)
    assert worked_on(operation).total == 0

    did(resume_bulk, operation)
    assert stands(operation) == ("completed", {"done": 2})


def test_s6_3_a_cancelled_one_looks_at_what_is_under_way(retrying: Retrying) -> None:
    operation = slice_of(frozen(retrying(3, pace=Pace(samples=(1,)))))
    did(cancel_bulk, operation)
    assert operation.finished_at is None

    assert stands(operation) == ("cancelled", {"done": 1, "waiting": 2})
    assert operation.finished_at is not None


def test_s6_3_what_failed_is_done_again(retrying: Retrying, couriers: Couriers) -> None:
    operation = worked_on(retrying(2, refuse))
    couriers(accept)
    again = repeat_bulk(operation.pk, request=asked())

    assert stands(again) == ("completed", {"done": 2})
    assert (again.again_of, verdicts(operation)) == (operation, {"failed": 2})
    refused("None of it has failed again", repeat_bulk, again)


def test_s6_3_a_key_does_one_operation_once_more_alone(retrying: Retrying) -> None:
    one = worked_on(retrying(1, refuse))
    two, key = worked_on(retry_all(1)), uuid4()
    again = did(repeat_bulk, one, key=key)

    refused("used for another action", repeat_bulk, two, key=key)
    assert did(repeat_bulk, one, key=key) == again


def test_what_is_told_to_the_action_goes_with_it(operator: User) -> None:
    parcel = place("P-1")
    a_moment()
    about = {"status": "waiting"}
    operation = worked_on(retry_all(1, about, action="assign", given=["operator"]))

    assert (fresh(parcel).owner, operation.done) == (operator, 1)


def test_cancelled_processes_are_done_when_they_have_ended(retrying: Retrying) -> None:
    operation = retrying(2, action="cancel")

    assert stands(operation) == ("completed", {"done": 2})
    assert {one.status for one in ProcessInstance.objects.all()} == {"cancelled"}
