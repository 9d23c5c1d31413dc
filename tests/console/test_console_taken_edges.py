"""The edges painted as taken are those that were taken, in every pattern, and no others."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from monitoring.base.graphs import stored_graph
from monitoring.process.diagram import diagram_of
from monitoring.process.revision.moment import process_moment
from orchestrator.definition import Workflow
from orchestrator.definition.graph import Edge
from orchestrator.engine import operations
from orchestrator.engine.loops.drain import drain
from orchestrator.models import ProcessInstance, StepKind
from orchestrator.signals import Change, committed
from orchestrator.testing import pass_time
from orchestrator.testing.clock import move_times_back
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Inquiry
from tests.apps.patterns import patterns as p
from tests.apps.patterns import ways
from tests.apps.patterns.desk import finished, go_on, launch
from tests.apps.patterns.fixtures import flows, press
from tests.apps.process_managers.fixtures import known
from tests.services.asking import asked

__all__ = ["flows", "helpdesk", "press"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("flows", "helpdesk", "of_this_module"),
]

TEXT, IMAGE = p.Medium.TEXT, p.Medium.IMAGE


@pytest.fixture(scope="module")
def of_this_module() -> Iterator[None]:
    yield from known(ways.Crossing, ways.Wide, ways.Choosing, ways.Grown)


def taken(process: ProcessInstance) -> set[str]:
    """Return the edges painted as taken."""
    state = diagram_of(process_moment(process))
    edges = {edge.id: edge for edge in stored_graph(process.definition).edges}
    done = {name for name, classes in state.edges.items() if "is-done" in classes}
    return {written(edges[name]) for name in done & edges.keys()}


def written(edge: Edge) -> str:
    sign = {"repeat": "back ", "error": "error ", "deadline": "late "}
    return f"{sign.get(edge.kind, '')}{edge.source} > {edge.target}"


Case = tuple[type[Workflow], tuple[Any, ...], str]
"""A workflow with an input, and the edges that it takes."""


def many(form: str, number: int) -> str:
    return ", ".join(form.format(n) for n in range(number))


def chosen(number: int, other: str) -> str:
    return f"{many('choose > branch_{}', number)}, choose_too > {other}"


SEEN = "classify > see_image, see_image > gather"
BIG, EVEN = "same > big, big > all_in_all", "same > even, even > all_in_all"
MAPPED = "deal > square, square > total"
COUNTED = "count_up > look_up, back look_up > count_up"
SPLIT = "add_one > double, add_one > negative, double > together, negative > together"

CASES: tuple[Case, ...] = (
    (p.Chain, (1,), "add_one > double, double > tell"),
    (p.Parallel, (1,), SPLIT),
    (p.Needing, (1,), f"{SPLIT}, add_one > sum_up, together > sum_up"),
    (
        p.MultiChoice,
        ([TEXT, IMAGE],),
        f"classify > read_text, read_text > gather, {SEEN}",
    ),
    (p.MultiChoice, ([IMAGE],), SEEN),
    (p.MultiChoice, ([],), "classify > see_nothing, see_nothing > gather"),
    (p.ByPredicate, (12,), f"{BIG}, {EVEN}"),
    (p.ByPredicate, (13,), BIG),
    (p.ByPredicate, (2,), EVEN),
    (p.RouteByValue, (p.Priority.LOW,), "prioritize > reply"),
    (p.RouteByValue, (p.Priority.URGENT,), "prioritize > escalate"),
    (p.RouteByPriority, (12,), "same > big"),
    (p.RouteByPriority, (1,), "same > plain"),
    (p.FanOut, ([],), MAPPED),
    (p.FanOut, ([*range(7)],), MAPPED),
    (p.Windowed, ([*range(7)],), MAPPED),
    (p.Tolerant, ([1, -2, 3],), MAPPED),
    (p.Looping, (1,), f"{COUNTED}, look_up > stop"),
    (p.Looping, (2,), "count_up > look_up, look_up > stop"),
    (p.Looping, (-5,), f"{COUNTED}, look_up > give_up"),
    (ways.Grown, (1,), "back grow > grow, grow > go_right"),
    (p.AnyOf, (-1,), "quick > first"),
    (p.TwoOfThree, (-1,), "quick > two, other > two"),
    (p.RestCancelled, (1,), "quick > first"),
    (p.CatchOne, (1,), "risky > praise"),
    (p.CatchOne, (-1,), "error risky > explain"),
    (p.CatchGroup, (-1,), "error risky > explain"),
    (p.CatchMap, ([1, 2],), MAPPED),
    (p.CatchMap, ([-2],), "deal > square, error square > explain"),
    (p.WithChild, ([1, 2],), "parity > after_parity"),
    (ways.Wide, (1,), many("begin > branch_{0}, branch_{0} > close", 14)),
    (ways.Choosing, ([*range(14)], False), chosen(14, "go_right")),
    (ways.Choosing, ([*range(13)], True), chosen(13, "branch_13")),
)


def named(given: object) -> str:
    return given.__name__ if isinstance(given, type) else str(given)[:40]


@pytest.mark.parametrize(("definition", "given", "edges"), CASES, ids=named)
def test_exactly_the_edges_taken_are_painted(
    definition: type[Workflow], given: tuple[Any, ...], edges: str, press: str
) -> None:
    process = finished(definition, *given)

    assert process.finished_at is not None
    assert taken(process) == set(edges.split(", "))


def test_a_branch_that_runs_on_past_its_join_is_painted_when_there(press: str) -> None:
    process = finished(p.RestRuns, 1)
    assert taken(process) == {"quick > first"}

    later = {"slow > after_slow", "after_slow > first"}
    assert taken(go_on(go_on(process, press))) == {"quick > first", *later}


def test_what_had_arrived_before_a_group_failed_stays_painted(press: str) -> None:
    process = launch(p.CatchGroup, -1)
    drain(press)

    assert taken(go_on(process)) == {"slow > finish", "error risky > explain"}


def test_of_two_ways_to_the_same_step_the_one_taken_is_painted() -> None:
    late, refused = finished(Inquiry, "T-1"), finished(Inquiry, "T-2")
    decide(refused, "refuse")
    pass_time(timedelta(days=3))

    ways = {"late verdict > escalate", "verdict > escalate"}
    assert taken(go_on(late)) & ways == {"late verdict > escalate"}
    assert taken(go_on(refused)) & ways == {"verdict > escalate"}


@pytest.mark.parametrize("by_deadline", [False, True])
def test_a_way_given_up_is_no_longer_painted(by_deadline: bool, press: str) -> None:
    """Nor is a deadline that was given up taken for the way that is taken later."""
    process = finished(ways.Crossing, 1)
    before = process.revision
    if by_deadline:
        move_times_back(timedelta(days=2))
    else:
        decide(process, ways.Way.LEFT)
    sign = "late " if by_deadline else ""
    assert taken(go_on(process)) == {f"{sign}crossing > go_left"}

    operations.resume(process.pk, before, request=asked())
    assert taken(go_on(process)) == set()

    way = ways.Way.LEFT if by_deadline else ways.Way.RIGHT
    decide(go_on(process), way)
    assert taken(go_on(process)) == {f"crossing > go_{way}"}


def test_a_change_names_every_edge_it_took() -> None:
    told: list[str] = []

    def hear(change: Change, **_: object) -> None:
        told.append(change.edge)

    committed.connect(hear)
    try:
        finished(ways.Wide, 1)
    finally:
        committed.disconnect(hear)

    assert ",".join(f"e{number}" for number in range(14)) in told


def decide(process: ProcessInstance, choice: str) -> None:
    run = process.step_runs.get(kind=StepKind.ASK, finished_at=None)
    operations.decide(process.pk, run.pk, choice, request=asked())
