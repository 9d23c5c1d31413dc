"""One burst of due work does not hold up the work of other definitions, and nothing is left out of turn."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import pytest

from orchestrator import Permanent, Retry, start_process
from orchestrator.definition import (
    Event,
    ProcessManager,
    StepContext,
    Workflow,
    after,
    during,
    repeat,
    sleep,
    step,
    then,
    when,
)
from orchestrator.definition import run as run_step
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.loops import drain as draining
from orchestrator.engine.loops.drain import ReadyWork, WorkKind, drain
from orchestrator.engine.operations import skip
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.tables import events, step_runs
from orchestrator.engine.steps.runner import StepRunner
from orchestrator.engine.work import leases, step_claims
from orchestrator.engine.work.step_claims import StepClaims
from orchestrator.models import Checkpoint, ProcessInstance, Status, StepRun
from orchestrator.testing import failing, run, started
from orchestrator.testing.clock import move_times_back
from tests.services.asking import asked as pressed
from tests.services.crews import knowing
from tests.services.noting import noting
from tests.services.supervised import Supervised, unhurried

__all__ = ["unhurried"]

pytestmark = pytest.mark.django_db(transaction=True)

MOMENT = timedelta(hours=1)
LENGTH = 10
ROUNDS = 6


called: list[tuple[str, UUID]] = []
"""The calls of steps, and their processes."""

meanwhile: dict[str, Callable[[], object]] = {}
"""What the first call of a step does, by the step's name."""


@pytest.fixture(autouse=True)
def without_calls() -> None:
    called.clear()
    meanwhile.clear()


def note(context: StepContext) -> None:
    """Note the call, and do what the test wants meanwhile."""
    called.append((context.step, context.process_id))
    meanwhile.pop(context.step, list)()


class Nap(Workflow):
    """A process that sleeps, and then takes a step."""

    flow = (then(sleep(MOMENT, "nap"), step(note, "wake_up")),)


class LongNap(Workflow):
    """A process that sleeps, and then takes six steps."""

    flow = (then(sleep(MOMENT, "nap"), *(step(note, f"n_{n}") for n in range(6))),)


def count_rounds(context: StepContext) -> int:
    return context.visit


def is_enough(count_rounds: int) -> bool:
    return count_rounds == ROUNDS


class Loop(Workflow):
    """Two steps, again and again."""

    flow = (
        repeat(
            step(note, "again"),
            step(count_rounds),
            until=is_enough,
            at_most=ROUNDS,
            then=step(note, "out"),
        ),
    )


def try_again(context: StepContext) -> None:
    if context.attempt == 1:
        raise Retry(MOMENT)


class Retried(Workflow):
    """One step that is tried twice."""

    flow = (step(try_again, "nap"),)


class Opened(Event):
    shop: str


@dataclass(frozen=True)
class Shop:
    shop: str


class Hours(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    OVER = "over"


class Late(ProcessManager):
    """Waits for its deadline."""

    correlation = "shop"
    Step, Data = Hours, Shop
    transitions = (
        during(Hours.CLOSED, when(Opened).go_to(Hours.OPEN)),
        during(Hours.OPEN, after(MOMENT).go_to(Hours.OVER)),
    )


class Chain(Workflow):
    """Ten steps, one after the other."""

    flow = (then(*(step(note, f"link_{n}") for n in range(LENGTH))),)


def other(number: int) -> type[Workflow]:
    """Return another definition of one step, which has the same name in all of them."""
    body = {"__doc__": "One step.", "flow": (step(note, "same"),)}
    return type(f"Other{number}", (Workflow,), body)


OTHERS = [other(number) for number in range(6)]

inner_one = run_step(OTHERS[0], "inner_one")


class Outer(Workflow):
    """Runs a process of one step."""

    flow = (inner_one,)


definitions = knowing(Nap, LongNap, Loop, Retried, Late, Chain, Outer, *OTHERS)


def naps_due(number: int) -> None:
    """Have so many sleeps due, all at one moment."""
    due(Nap, [()] * number)


def due(kind: type[Workflow | ProcessManager], given: Sequence[Any]) -> None:
    """Have the waiting visit of a process due for each of the inputs, all at one moment."""
    for one in given:
        start_process(kind, *one)
    drain()
    visits = StepRun.objects.filter(definition=kind.name, finished_at=None)
    assert visits.count() == len(given)
    visits.update(wake_at=database_now() + MOMENT)
    move_times_back(MOMENT + timedelta(seconds=10))


def deliver() -> None:
    """Deliver the events that start processes, before a step of theirs is run."""
    while found := events.claim("default", "sender", 64, 60):
        for item in found:
            deliver_claimed(item.work)


def start(*kinds: type[Workflow]) -> None:
    for kind in kinds:
        start_process(kind)
    deliver()


@dataclass(frozen=True)
class Taken:
    """A claim: how many visits it asked for, of which definitions it got some, and of which steps."""

    asked: int
    names: list[str]
    steps: list[str]


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> list[Taken]:
    """Return the claims of visits, in their order."""
    found: list[Taken] = []
    usual = step_runs.claim

    def claim(queue: str, owner: str, limit: int, *more: Any, **values: Any) -> Any:
        claimed = usual(queue, owner, limit, *more, **values)
        works = [item.work for item in claimed]
        names, steps = [one.definition for one in works], [one.node for one in works]
        found.append(Taken(limit, names, steps))
        return claimed

    monkeypatch.setattr(step_runs, "claim", claim)
    return found


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many turns each look has found."""
    found: list[int] = []
    usual = step_runs.due_turns

    def look(queue: str) -> Any:
        due = usual(queue)
        found.append(len(due))
        return due

    monkeypatch.setattr(step_runs, "due_turns", look)
    return found


def statuses(kind: type[Workflow]) -> set[str]:
    found = ProcessInstance.objects.filter(name=kind.name)
    return set(found.values_list("status", flat=True))


BURSTS: dict[type[Workflow | ProcessManager], list[Any]] = {
    Nap: [()] * 200,
    Retried: [()] * 200,
    Late: [(Opened(f"shop {number}"),) for number in range(200)],
}


@pytest.mark.parametrize("kind", BURSTS)
def test_a_burst_leaves_the_chains_of_another_definition_undelayed(
    kind: type[Workflow], claims: list[Taken], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first claim does not know of the burst yet; the second one takes the chains and goes on to their ends."""
    monkeypatch.setattr(draining, "GO_ON_SECONDS", 3600)
    due(kind, BURSTS[kind])
    start(*[Chain] * 5)
    ended: list[int] = []
    claims.clear()

    def is_enough() -> bool:
        if not ended and statuses(Chain) == {Status.COMPLETED}:
            ended.append(len(claims))
        return bool(ended)

    drain(stop=is_enough, alone=True)

    assert claims[0].names == [kind.name] * 4
    assert claims[1].names.count(Chain.name) == 5
    assert ended == [2]
    run()
    assert statuses(kind) == {Status.COMPLETED}


def written() -> list[str]:
    """Return the definition of each change, in the order of the commits."""
    return list(
        Checkpoint.objects.order_by("pk").values_list("instance__name", flat=True)
    )


@pytest.mark.parametrize("kind", BURSTS)
def test_the_scarce_ones_of_a_claim_go_on_to_their_ends_before_the_burst_begins(
    kind: type[Workflow], claims: list[Taken]
) -> None:
    due(kind, BURSTS[kind][:60])
    claims.clear()
    start(*[Chain] * 5)
    before = len(written())
    drain(alone=True)

    names = written()[before:]
    first = names.index(Chain.name)
    assert names[first : first + 5 * LENGTH] == [Chain.name] * 5 * LENGTH
    assert claims[1].names.count(kind.name) == 27
    assert statuses(kind) == statuses(Chain) == {Status.COMPLETED}


@pytest.mark.usefixtures("unhurried")
def test_chains_beside_a_burst_cost_it_three_statements_a_claim(
    claims: list[Taken],
) -> None:
    """A look for turns, and a commit of the chains' results apart from the burst's."""
    found = list[int]()
    for naps, chains in ((100, 0), (0, 5), (100, 5)):
        naps_due(naps)
        start(*[Chain] * chains)
        claims.clear()
        with noting() as asked:
            drain(alone=True)
        found.append(len(asked))

    alone, chains_alone, together = found
    assert together <= alone + chains_alone + 3 * len(claims)


def test_the_rest_of_a_claim_is_left_to_others_while_its_scarce_ones_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A supervisor sees it, also when a later step of the scarce ones takes its time."""
    worker, taken = Supervised(), list[int]()

    def look() -> None:
        worker.look()
        monkeypatch.setattr(draining, "BEGIN_SECONDS", 0)  # it is late by now
        taken.extend(one.work.pk for one in step_runs.claim("default", "B", 40, 600))

    meanwhile["link_7"] = look
    start(*[OTHERS[0]] * 50, Chain)
    worker.drain("default")

    held = StepRun.objects.filter(pk__in=taken)
    assert len(taken) >= 31
    assert set(held.values_list("node", "owner", "attempt")) == {("same", "B", 1)}
    leases.end_leases(["B"])
    run()
    assert statuses(OTHERS[0]) == statuses(Chain) == {Status.COMPLETED}
    assert len(called) == len(set(called))


@pytest.mark.usefixtures("unhurried")
def test_the_rest_of_a_claim_is_shown_while_results_of_its_scarce_ones_are_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Storing them may take its time, too."""
    worker, shown, usual = Supervised(), list[int](), StepRunner.store

    def store(runner: StepRunner, *, goes_on: bool = True) -> bool:
        shown.append(len(worker.shown.unbegun().works))
        return usual(runner, goes_on=goes_on)

    monkeypatch.setattr(StepRunner, "store", store)
    due(Nap, [()] * 50)
    start(Chain)
    worker.drain("default")

    assert shown.count(31) == LENGTH


def test_what_could_not_begin_for_the_scarce_ones_is_first_in_the_next_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each claim begins one visit here; neither definition waits for the other's end."""
    monkeypatch.setattr(draining, "BEGIN_SECONDS", -1.0)
    monkeypatch.setattr(draining, "TURN_SECONDS", -1.0)
    few, many = OTHERS[:2]
    start(*[many] * 12, *[few] * 12)
    before = len(written())
    drain()

    names = written()[before:]
    assert len(names) == 24
    assert min(Counter(names[:10]).values()) >= 4


def full_size(ready: ReadyWork, kind: WorkKind, *given: object) -> int:
    return kind.batch


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a worker look for work of other definitions after each round of a burst."""
    monkeypatch.setattr(draining, "GO_ON_SECONDS", 3600)
    monkeypatch.setattr(draining, "TURN_SECONDS", 0)
    monkeypatch.setattr(draining.ReadyWork, "_next_size", full_size)
    monkeypatch.setattr(step_claims, "BESIDE_SECONDS", 3600)


@pytest.mark.usefixtures("unhurried", "short_turns")
def test_a_burst_gives_way_to_what_starts_meanwhile_and_keeps_its_place(
    claims: list[Taken],
) -> None:
    """The chain that starts is in the next claim, with what the burst has under way; its sleeps have their share."""
    due(LongNap, [()] * 80)
    start(Chain)

    def begin() -> None:
        start_process(Chain)
        claims.clear()
        called.clear()

    meanwhile["link_9"] = lambda: meanwhile.update(n_1=begin)
    drain(alone=True)

    counts = Counter(claims[0].steps)
    assert counts == {"link_0": 1, "nap": 5, "n_2": 26}
    steps = [step for step, _ in called]
    assert steps.index("link_9") < steps.index("n_2")
    assert statuses(LongNap) == statuses(Chain) == {Status.COMPLETED}


@pytest.mark.usefixtures("short_turns")
def test_loops_that_give_way_go_behind_the_others_of_their_definition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Work of another definition is always due here."""
    monkeypatch.setattr(StepClaims, "are_others_due", lambda *given: True)
    monkeypatch.setattr(StepClaims, "beside_others", True)
    start(*[Loop] * 80)
    drain(alone=True)

    first = next(n for n, (step, _) in enumerate(called) if step == "out")
    assert len({process for step, process in called[:first] if step == "again"}) == 80
    assert statuses(Loop) == {Status.COMPLETED}


def test_a_chain_that_starts_after_another_is_in_the_next_claim(
    claims: list[Taken], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker has seen the other one just now: it looks before each claim, though only the burst was due."""
    monkeypatch.setattr(step_claims, "LOOK_SECONDS", 3600)
    monkeypatch.setattr(step_claims, "BESIDE_SECONDS", 3600)
    naps_due(150)
    start(Chain)

    def begin_later() -> None:
        calls = Counter(step for step, _ in called)
        if calls["wake_up"] < 40:  # in the third claim
            meanwhile["wake_up"] = begin_later
            return
        start_process(Chain)
        claims.clear()

    meanwhile["wake_up"] = begin_later
    drain(alone=True)

    assert "link_0" in claims[0].steps
    assert statuses(Nap) == statuses(Chain) == {Status.COMPLETED}


def claim(in_turns: StepClaims, size: int) -> list[StepRun]:
    return [item.work for item in in_turns.claim(size, 60)]


def crowded() -> StepClaims:
    """Return the claims of a worker that has seen a full one."""
    found = StepClaims("default", "A")
    assert len(claim(found, 1)) == 1
    return found


def test_each_definition_has_a_part_of_a_claim_the_scarce_ones_first_and_all_is_full() -> (
    None
):
    """What one part leaves over goes to the oldest: a claim smaller than asked still says that nothing is left."""
    naps_due(40)
    start(Chain, *[OTHERS[0]] * 3)
    taken = claim(crowded(), 32)

    names = [one.definition for one in taken]
    assert names == [Chain.name, *[OTHERS[0].name] * 3, *[Nap.name] * 28]
    keys = [one.pk for one in taken if one.definition == Nap.name]
    assert keys == sorted(keys)


def test_no_definition_waits_for_ever_where_there_are_more_than_places() -> None:
    naps_due(40)
    start(*OTHERS)
    in_turns = crowded()
    seen, asked = set[str](), 0
    while len(seen) < len(OTHERS):
        taken = claim(in_turns, 3)
        assert len(taken) == 3
        seen |= {one.definition for one in taken} - {Nap.name}
        asked += 1
    assert asked < 20


def test_steps_of_one_name_in_two_definitions_have_a_turn_each() -> None:
    start(*[OTHERS[0]] * 20, OTHERS[1])
    names = [one.definition for one in claim(crowded(), 4)]

    assert names[0] == OTHERS[1].name


def test_what_sleeps_does_not_hold_up_what_runs_in_one_definition_either() -> None:
    naps_due(40)
    start(*[OTHERS[0]] * 2)
    mine = StepRun.objects.filter(definition=OTHERS[0].name)
    mine.update(definition=Nap.name)

    assert [one.node for one in claim(crowded(), 8)][:2] == ["same"] * 2


def test_visits_that_workers_of_an_earlier_release_have_made_have_a_turn() -> None:
    """They write no definition."""
    naps_due(40)
    start(*[OTHERS[0]] * 2)
    StepRun.objects.filter(definition=OTHERS[0].name).update(definition="")

    assert [one.definition for one in claim(crowded(), 8)][:2] == [""] * 2
    StepRun.objects.filter(owner="A").update(owner="", attempt=0, status="waiting")
    StepRun.objects.filter(definition="").update(status="ready")
    StepRun.objects.update(wake_at=database_now())
    run()
    assert statuses(Nap) == statuses(OTHERS[0]) == {Status.COMPLETED}


def test_a_step_that_has_failed_and_goes_on_with_its_sub_process_has_a_turn() -> None:
    """Its visit is due while it still counts as failed."""
    with failing(note, Permanent("no")):
        child = started(Outer).children[0]
    naps_due(40)
    failed = child.instance.step_runs.get(node="same")
    skip(child.id, failed.pk, None, request=pressed())
    waiting = StepRun.objects.get(node="inner_one", status=Status.FAILED)

    assert claim(crowded(), 8)[0].pk == waiting.pk


def test_work_of_a_lost_worker_is_taken_among_the_turns() -> None:
    """Its lease has run out, and it has an owner: it is not among what is unclaimed."""
    naps_due(40)
    start(Chain, *OTHERS)
    lost = StepRun.objects.get(definition=OTHERS[5].name)
    long_ago = database_now() - MOMENT
    in_turns = crowded()
    StepRun.objects.filter(pk=lost.pk).update(owner="dead", wake_at=long_ago)

    assert lost.pk in {one.pk for one in claim(in_turns, 4)}


def test_rows_with_one_moment_are_given_out_once_whoever_claims() -> None:
    naps_due(40)
    start(Chain)
    first, second = crowded(), StepClaims("default", "B")
    claim(second, 1)
    taken = [one.pk for size in (16, 16) for one in claim(first, size)]
    taken += [one.pk for one in claim(second, 16)]

    assert len(taken) == len(set(taken)) == 39


def test_where_one_kind_alone_is_due_claims_go_by_age(
    claims: list[Taken], looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked but for one look in a while, and no look where claims are not full."""
    monkeypatch.setattr(step_claims, "LOOK_SECONDS", 3600)
    start(Chain, Chain, Chain)
    run()
    assert looks == []

    start(*[Chain] * 80)
    run()
    assert looks == [1]
    assert {Chain.name} >= {name for one in claims for name in one.names}
    assert statuses(Chain) == {Status.COMPLETED}


def test_a_look_comes_again_after_a_moment(
    looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_claims, "LOOK_SECONDS", 3600)
    naps_due(12)
    claimed = crowded()
    claim(claimed, 2)
    start(Chain)
    claim(claimed, 2)
    assert looks == [1]

    claimed = crowded()  # as if the moment were over
    names = [one.definition for one in claim(claimed, 4)]
    assert looks == [1, 2]
    assert Chain.name in names
