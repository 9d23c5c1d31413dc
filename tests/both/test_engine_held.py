"""What a worker holds beside the work that it is at is taken over in time, and nothing runs twice for it."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction

from orchestrator import start_process
from orchestrator.configuration.conf import conf
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.loops import drain as draining
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.table import Table
from orchestrator.engine.sql.tables import commands, events, step_runs
from orchestrator.engine.steps import quick_results, session
from orchestrator.engine.steps.known_process import HeldResult
from orchestrator.engine.steps.quick_results import QuickResults
from orchestrator.engine.work import leases, take_over
from orchestrator.engine.work.worker_slice import (
    BEGIN_SECONDS,
    TAKE_SECONDS,
    UNSEEN,
    Claim,
    UnstoredResult,
)
from orchestrator.models import (
    Lost,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.workers.shared_memory.claims import RESULTS_ROOM, SharedClaims
from orchestrator.workers.take_over import GLANCE_SECONDS
from tests.apps.long_work.fixtures import long_work, written
from tests.apps.long_work.processes import (
    AT_ONCE,
    Errands,
    ErrandWanted,
    LongLayer,
    LongMap,
    LongStep,
)
from tests.apps.long_work.ways import ACTIONS, entries
from tests.apps.patterns.desk import launch
from tests.apps.process_managers.together import raised, together
from tests.services.doing import fresh
from tests.services.supervised import Supervised, unhurried

__all__ = ["long_work", "unhurried", "written"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("long_work"),
]

NAMES = ("a", "b", "c", "d")


def errand(name: str) -> None:
    start_process(Errands, ErrandWanted(name))


def long_step(name: str) -> None:
    launch(LongStep, name)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers of this process hand on what they come to too late, as others do."""
    monkeypatch.setattr(draining, "BEGIN_SECONDS", BEGIN_SECONDS)


@pytest.fixture
def worker() -> Supervised:
    return Supervised()


def claimed_by(owner: str, table: Table[Any], limit: int = 16) -> list[object]:
    return [one.work.pk for one in table.claim("default", owner, limit, 600)]


def begun() -> list[str]:
    return [entry.name for entry in entries()]


def have(first: Callable[[], object], others: Callable[[], object] = list) -> None:
    """Have the piece of work that begins first do one thing, and the others another."""
    for name in NAMES:
        ACTIONS[name] = lambda: first() if len(begun()) == 1 else others()


@pytest.fixture(params=["commands", "steps"])
def table(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Table[Any]:
    """Have four pieces of work due, which are claimed together; return their table."""
    monkeypatch.setattr(draining, "FEW", 4)
    for name in NAMES:
        errand(name) if request.param == "commands" else long_step(name)
    for event in events.claim("default", "sender", 16, conf().LEASE_SECONDS):
        deliver_claimed(event.work)
    return commands if request.param == "commands" else step_runs


def all_once(table: Table[Any]) -> bool:
    """Say whether each piece of work was begun once and is done, with its first attempt."""
    rows = table.model._default_manager.values_list("attempt", "status")
    return sorted(begun()) == sorted(NAMES) and set(rows) == {(1, "done")}


# What is claimed and not begun


def test_what_a_busy_worker_has_not_begun_is_as_it_was_before(
    table: Table[Any], worker: Supervised
) -> None:
    seen: list[tuple[str, int, str]] = []

    def look() -> None:
        worker.look()
        rows = table.model._default_manager.order_by("pk")
        seen.extend(rows.values_list("owner", "attempt", "status"))

    have(look)
    worker.drain("default")

    assert sorted(seen) == [("", 0, "ready")] * 3 + [(worker.owner, 1, "running")]
    assert all_once(table)


def test_what_others_took_is_not_begun(table: Table[Any], worker: Supervised) -> None:
    taken: list[object] = []

    def look() -> None:
        worker.look()
        taken.extend(claimed_by("B", table, 2))

    have(look)
    worker.drain("default")

    assert len(begun()) == 2
    held = table.model._default_manager.filter(owner="B").values_list("pk", "attempt")
    assert set(held) == {(pk, 1) for pk in taken}
    leases.end_leases(["B"])
    worker.drain("default")
    assert sorted(begun()) == sorted(NAMES)


def test_a_worker_alone_gives_back_what_it_comes_to_too_late(
    table: Table[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a supervisor, or with one that is frozen, others get it as soon as the worker can say so."""
    counts: list[int] = []
    held = table.model._default_manager.exclude(owner="")

    def sleep() -> None:
        time.sleep(BEGIN_SECONDS + 0.02)
        monkeypatch.setattr(draining, "FEW", 2)

    have(sleep, lambda: counts.append(held.count()))
    drain()

    assert counts[0] == 2  # of three that it had
    assert sorted(begun()) == sorted(NAMES)


def test_a_claim_that_was_made_anew_is_left_alone_by_who_is_late(
    table: Table[Any], worker: Supervised
) -> None:
    """The database may carry a statement out after seconds, when the worker has let go and claimed the same again."""
    known: list[tuple[list[str], Any]] = []
    freed: list[bool] = []

    def look() -> None:
        time.sleep(BEGIN_SECONDS + 0.05)
        lease = timedelta(seconds=conf().LEASE_SECONDS)
        known.append((worker.shown.unbegun().works, database_now() + lease))

    def free() -> None:
        [(works, until)] = known
        freed.append(take_over.yield_work(worker.owner, works, until))

    have(look, free)
    worker.drain("default")

    assert freed == [False] * 3
    assert all_once(table)


def test_what_is_given_back_precedes_what_became_due_later(worker: Supervised) -> None:
    taken: list[object] = []
    for name in ("a", "b"):
        long_step(name)
    waiting = StepRun.objects.latest("pk").pk

    def look() -> None:
        long_step("c")
        worker.look()
        taken.extend(claimed_by("B", step_runs, 1))
        leases.end_leases(["B"])

    ACTIONS["a"] = look
    worker.drain("default")

    assert taken == [waiting]
    assert begun() == ["a", "b", "c"]


def due_at_one_moment() -> None:
    """Have all due steps become due at one moment, as sleeps and deadlines of one burst do."""
    due = StepRun.objects.filter(owner="", wake_at__isnull=False)
    due.update(wake_at=database_now() - timedelta(seconds=1))


def test_what_is_given_back_precedes_what_is_due_at_one_moment(
    worker: Supervised,
) -> None:
    """Its higher key alone would put it behind all of that."""
    taken: list[object] = []
    for name in ("c", "a", "b"):
        long_step(name)
    first, *_, last = StepRun.objects.order_by("pk").values_list("pk", flat=True)
    StepRun.objects.filter(pk=first).update(wake_at=database_now() + timedelta(hours=1))

    def look() -> None:
        StepRun.objects.filter(pk=first).update(wake_at=database_now())
        due_at_one_moment()
        worker.look()
        taken.extend(claimed_by("B", step_runs, 1))
        leases.end_leases(["B"])

    ACTIONS["a"] = look
    worker.drain("default")

    assert taken == [last]


def test_what_a_lost_worker_had_claimed_keeps_its_place() -> None:
    """A step that was cut off, uncharged, and one that had not begun go before what is due since."""
    for name in ("a", "b", "c", "d"):
        long_step(name)
    mine = claimed_by("A", step_runs, 2)
    due_at_one_moment()
    leases.end_leases(["A"], running={f"steprun:{mine[0]}": Lost.CUT_OFF})

    assert claimed_by("B", step_runs, 2) == mine


def test_what_has_lost_its_attempt_with_its_worker_comes_after_what_is_due() -> None:
    """It may have killed its worker, and would keep all others from being begun."""
    for name in ("a", "b"):
        long_step(name)
    [mine] = claimed_by("A", step_runs, 1)
    leases.end_leases(["A"], running={f"steprun:{mine}": Lost.DIED})

    assert claimed_by("B", step_runs, 1) != [mine]


def test_events_behind_the_one_at_hand_stay_with_their_worker() -> None:
    """Nobody else may begin them either: they would overtake it."""
    held = SharedClaims()
    claims = [Claim("e:1", "P"), Claim("e:2", "Q"), Claim("e:3", "P"), Claim("e:4", "")]
    held.show_claimed(claims, 1.0)
    assert held.unbegun() == (1.0, ["e:2", "e:4"])

    held.show_begun(1)
    assert held.unbegun() == (1.0, ["e:4"])
    held.release()
    assert held.unbegun() == (0.0, [])


def test_an_answer_to_a_claim_that_comes_after_half_a_lease_is_not_trusted(
    table: Table[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, slow = table.claim, [True]

    def claim(*args: Any, **more: Any) -> Any:
        found = usual(*args, **more)
        if found and slow:
            slow.clear()
            time.sleep(0.6)
            leases.end_leases(["A"])  # as if its lease had run out
            assert len(claimed_by("B", table, 1)) == 1
        return found

    monkeypatch.setattr(table, "claim", claim)
    monkeypatch.setitem(settings.PROCESSION, "LEASE_SECONDS", 1)
    monkeypatch.setitem(settings.PROCESSION, "HEARTBEAT_SECONDS", 0.5)
    drain(owner="A")

    assert len(begun()) == 3
    leases.end_leases(["B"])
    drain(owner="A")
    assert sorted(begun()) == sorted(NAMES)


# Results that are held


def elements(process: ProcessInstance) -> list[StepRun]:
    return list(process.step_runs.filter(kind=StepKind.ITEM).order_by("item"))


def test_without_a_supervisor_a_result_is_stored_before_the_next_element_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(draining, "UNSEEN", UNSEEN)
    process = launch(LongMap, dict.fromkeys(NAMES, AT_ONCE))
    seen: list[list[str]] = []
    ACTIONS["d"] = lambda: seen.append([run.status for run in elements(process)])
    drain()

    assert seen == [["done", "done", "done", "running"]]
    assert fresh(process).status == Status.COMPLETED


@pytest.mark.usefixtures("unhurried")
def test_results_of_quick_elements_share_a_commit(worker: Supervised) -> None:
    process = launch(LongMap, {f"n{number}": AT_ONCE for number in range(60)})
    worker.drain("default")

    assert fresh(process).status == Status.COMPLETED
    assert process.revision < 40
    assert len(begun()) == 60


@pytest.mark.parametrize("goes_on", ["another worker", "the worker itself"])
def test_results_that_are_held_while_another_element_runs_are_stored_by_others(
    goes_on: str, worker: Supervised, unhurried: None
) -> None:
    """The next worker goes on with it."""
    process = launch(LongMap, dict.fromkeys(NAMES, AT_ONCE))
    seen: list[list[tuple[str, str, Any]]] = []

    def state() -> None:
        rows = elements(process)
        seen.append([(run.status, run.owner, run.result) for run in rows])

    def look() -> None:
        state()
        time.sleep(TAKE_SECONDS)
        worker.others.look()
        state()
        if goes_on == "another worker":
            drain(owner="B")
            state()

    ACTIONS["d"] = look
    worker.drain("default")

    first, mine = ("done", "", "a"), ("running", worker.owner, None)
    assert seen[0] == [first, mine, mine, mine]  # it was run with the step before
    assert seen[1] == [first, ("ready", "", "b"), ("ready", "", "c"), mine]
    for then in seen[2:]:
        assert then == [first, ("done", "", "b"), ("done", "", "c"), mine]
    assert fresh(process).status == Status.COMPLETED
    assert process.step_runs.get(node="together").result == 4
    assert begun() == list(NAMES)
    assert {run.attempt for run in elements(process)} == {1}


@pytest.mark.usefixtures("unhurried")
def test_a_result_that_others_have_stored_keeps_its_place(worker: Supervised) -> None:
    """What follows a finished step does not wait for all that became due before its result was stored."""
    launch(LongMap, dict.fromkeys(NAMES, AT_ONCE))
    returned: list[object] = []
    taken: list[object] = []

    def look() -> None:
        for name in ("e", "f", "g"):
            long_step(name)
        due_at_one_moment()
        time.sleep(TAKE_SECONDS)
        worker.others.look()
        ready = StepRun.objects.filter(status=StepStatus.READY)
        stored = ready.exclude(checksum="")
        returned.extend(stored.order_by("pk").values_list("pk", flat=True))
        taken.extend(claimed_by("B", step_runs, len(returned)))
        leases.end_leases(["B"])

    ACTIONS["d"] = look
    worker.drain("default")

    assert len(returned) == 2
    assert taken == returned


def test_a_process_is_not_over_while_a_result_that_others_have_stored_waits_for_who_goes_on(
    worker: Supervised, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that had held it cannot store it, and so must not count it as stored."""
    monkeypatch.setattr(draining, "FEW", 4)
    monkeypatch.setattr(draining, "BEGIN_SECONDS", 30)
    monkeypatch.setattr(session, "HOLD_SECONDS", 0.05)  # b alone is slower
    monkeypatch.setattr("orchestrator.engine.work.worker_slice.HOLD_SECONDS", 30)
    monkeypatch.setattr(quick_results, "TAKE_SECONDS", 30)  # it comes to it just then
    process = launch(LongLayer, ("a", "b", "c"), (), AT_ONCE)

    def look() -> None:
        # Longer than results may be held, and, where the machine lets it, shorter than what is claimed.
        time.sleep(BEGIN_SECONDS * 0.8)
        worker.others.look()

    ACTIONS["b"] = look
    worker.drain("default")

    assert fresh(process).status == Status.COMPLETED
    assert {run.status for run in process.step_runs.all()} == {StepStatus.DONE}


@pytest.mark.usefixtures("unhurried")
def test_results_that_their_worker_sees_to_are_left_to_it(
    worker: Supervised, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two elements it is about to store them, or to claim more."""
    launch(LongMap, dict.fromkeys(NAMES, AT_ONCE))
    seen: list[int] = []
    usual = QuickResults.take

    def take(quick: QuickResults) -> list[HeldResult]:
        time.sleep(TAKE_SECONDS + GLANCE_SECONDS)
        worker.others.look()
        ready = StepRun.objects.filter(status=StepStatus.READY)
        seen.append(ready.exclude(checksum="").count())
        return usual(quick)

    monkeypatch.setattr(QuickResults, "take", take)
    monkeypatch.setattr(session, "HOLD_SECONDS", 30)  # all are quick
    worker.drain("default")

    assert set(seen) == {0}


@pytest.mark.usefixtures("unhurried")
def test_who_takes_results_over_does_not_wait_for_the_worker_that_stores_them(
    worker: Supervised,
) -> None:
    """Each of the two would wait for rows that the other has locked in another order."""
    if not connection.features.has_select_for_update_skip_locked:
        pytest.skip("SQLite locks the whole database")
    process = launch(LongMap, dict.fromkeys(NAMES, AT_ONCE))
    seen: list[list[tuple[str, str]]] = []

    def look() -> None:
        """Look from another session, while this one has one of two rows locked."""
        time.sleep(TAKE_SECONDS)
        [first, *_] = worker.shown.unstored().results
        with transaction.atomic():
            StepRun.objects.select_for_update().get(pk=first.key)
            assert raised(together(worker.others.look)) == []
        seen.append([(run.status, run.owner) for run in elements(process)])

    ACTIONS["d"] = look
    worker.drain("default")

    mine = ("running", worker.owner)
    assert seen == [[("done", ""), mine, ("ready", ""), mine]]
    assert fresh(process).status == Status.COMPLETED
    assert begun() == list(NAMES)


def test_a_result_that_does_not_fit_is_stored_at_once(worker: Supervised) -> None:
    long = "n" * RESULTS_ROOM
    assert not worker.shown.show_result(UnstoredResult(1, 1, long, "sum"))
    assert worker.shown.unstored() == (0.0, [])
    assert worker.shown.show_result(UnstoredResult(2, 1, "short", "sum"))
    assert worker.shown.unstored().results == []  # the worker sees to it itself
    worker.shown.show_calling()
    assert [one.key for one in worker.shown.unstored().results] == [2]
