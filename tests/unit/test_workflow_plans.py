"""The cache of plans that are made from inputs: it counts the memory of each plan."""

import tracemalloc
from datetime import UTC, datetime
from uuid import uuid4

from orchestrator.containers import LruCache
from orchestrator.definition import Workflow, needs, step
from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.storage.definitions import BYTES, Began, Made, plan_size
from tests.unit.workflows import plan_of, steps, work

a, b, c, d = steps("a b c d")
small, other, dense = (
    plan_of(needs(b, [a])),
    plan_of(needs(c, [a])),
    plan_of(needs(d, [a, b, c]), needs(c, [a, b]), needs(b, [a])),
)


def test_a_plan_belongs_to_its_class_and_its_input() -> None:
    plans = LruCache[Made, Plan](BYTES, plan_size)
    plans.keep((Workflow, "one"), small)
    plans.keep((Workflow, "two"), other)

    assert plans.get((Workflow, "one")) is small
    assert plans.get((Workflow, "two")) is other
    assert plans.get((Workflow, "three")) is None


def test_what_was_not_used_for_longest_makes_room() -> None:
    plans = LruCache[Made, Plan](2 * plan_size(small), plan_size)
    for name in "one", "two":
        plans.keep((Workflow, name), small)
    plans.get((Workflow, "one"))
    plans.keep((Workflow, "three"), small)

    kept = [name for name in ("one", "two", "three") if plans.get((Workflow, name))]
    assert kept == ["one", "three"]


def test_links_take_room_too() -> None:
    assert len(dense.links) > len(dense.vertices)
    more = plan_size(other) - plan_size(small)
    assert plan_size(dense) > plan_size(small) + 2 * more
    plans = LruCache[Made, Plan](3 * plan_size(small), plan_size)
    plans.keep((Workflow, "one"), small)
    plans.keep((Workflow, "two"), small)
    plans.keep((Workflow, "dense"), dense)

    assert plans.get((Workflow, "one")) is None
    assert plans.get((Workflow, "dense")) is dense


def test_one_that_is_larger_than_all_room_is_kept_alone() -> None:
    plans = LruCache[Made, Plan](1, plan_size)
    plans.keep((Workflow, "one"), small)
    plans.keep((Workflow, "two"), other)

    assert plans.get((Workflow, "one")) is None
    assert plans.get((Workflow, "two")) is other


def test_the_same_plan_again_takes_no_more_room() -> None:
    plans = LruCache[Made, Plan](2 * plan_size(small), plan_size)
    plans.keep((Workflow, "one"), small)
    for _ in range(5):
        plans.keep((Workflow, "two"), small)

    assert plans.get((Workflow, "one")) is small


def test_of_so_many_processes_the_checksums_are_known() -> None:
    checksums = LruCache[Began, str](2)
    now = datetime.now(UTC)
    first, second, third = ((uuid4(), now, 1) for _ in range(3))
    for process in (first, second, third):
        checksums.keep(process, "sum")

    known = [checksums.get(process) for process in (first, second, third)]
    assert known == [None, "sum", "sum"]


def test_its_size_is_about_what_it_takes_in_memory() -> None:
    for count, ways in ((300, 1), (200, 40)):
        tracemalloc.start()
        plan = _grid(count, ways)
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert plan_size(plan) / 2.5 < taken < plan_size(plan) * 2.5


def _grid(count: int, ways: int) -> Plan:
    """Steps each of which needs so many before it."""
    made = [step(work, f"s{number}") for number in range(count)]
    return plan_of(
        *(
            needs(one, made[max(0, number - ways) : number])
            for number, one in enumerate(made)
            if number
        )
    )
