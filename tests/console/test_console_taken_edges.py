"""The edges painted as taken are those that were taken, in every pattern, and no others."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from monitoring.queries.graphs import graph_of
from monitoring.queries.instance.visits import RunFilters
from monitoring.queries.instance.workflow import workflow_view
from orchestrator.definition import (
    Workflow,
)
from orchestrator.definition.graph import Edge
from orchestrator.engine import operations
from orchestrator.engine.drain import drain
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.models import ProcessInstance, StepKind
from orchestrator.signals import Change, committed
from orchestrator.testing import pass_time
from orchestrator.testing.clock import age
from tests.apps.every_construct.fixtures import helpdesk
from tests.apps.every_construct.processes import Inquiry
from tests.apps.patterns import patterns as p
from tests.apps.patterns import ways
from tests.apps.patterns.desk import finished, go_on, launch
from tests.apps.patterns.fixtures import flows, press
from tests.apps.process_managers.fixtures import known

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
    view = workflow_view(process, RunFilters())
    edges = {edge.id: edge for edge in graph_of(process.definition).edges}
    done = {name for name, classes in view.state.edges.items() if "is-done" in classes}
    return {written(edges[name]) for name in done & edges.keys()}


def written(edge: Edge) -> str:
    sign = {"repeat": "back ", "error": "error ", "deadline": "late "}
    return f"{sign.get(edge.kind, '')}{edge.source} > {edge.target}"


@dataclass
class Case:
    """A workflow with an input, and the edges that it takes."""

    definition: type[Workflow]
    given: tuple[Any, ...]
    edges: set[str]

    def __str__(self) -> str:
        return f"{self.definition.__name__}{self.given}"


def all_of(number: int) -> list[int]:
    return list(range(number))


MAPPED = {"deal > square", "square > total"}
COUNTED = {"count_up > look_up", "back look_up > count_up"}

CASES = (
    Case(p.Chain, (1,), {"add_one > double", "double > tell"}),
    Case(
        p.Parallel,
        (1,),
        {
            "add_one > double",
            "add_one > negative",
            "double > together",
            "negative > together",
        },
    ),
    Case(
        p.Needing,
        (1,),
        {
            "add_one > double",
            "add_one > negative",
            "double > together",
            "negative > together",
            "add_one > sum_up",
            "together > sum_up",
        },
    ),
    Case(
        p.MultiChoice,
        ([TEXT, IMAGE],),
        {
            "classify > read_text",
            "classify > see_image",
            "read_text > gather",
            "see_image > gather",
        },
    ),
    Case(p.MultiChoice, ([IMAGE],), {"classify > see_image", "see_image > gather"}),
    Case(p.MultiChoice, ([],), {"classify > see_nothing", "see_nothing > gather"}),
    Case(
        p.ByPredicate,
        (12,),
        {"same > big", "same > even", "big > all_in_all", "even > all_in_all"},
    ),
    Case(p.ByPredicate, (13,), {"same > big", "big > all_in_all"}),
    Case(p.ByPredicate, (2,), {"same > even", "even > all_in_all"}),
    Case(p.RouteByValue, (p.Priority.LOW,), {"prioritize > reply"}),
    Case(p.RouteByValue, (p.Priority.URGENT,), {"prioritize > escalate"}),
    Case(p.RouteByPriority, (12,), {"same > big"}),
    Case(p.RouteByPriority, (1,), {"same > plain"}),
    Case(p.FanOut, ([],), MAPPED),
    Case(p.FanOut, (all_of(7),), MAPPED),
    Case(p.Windowed, (all_of(7),), MAPPED),
    Case(p.Tolerant, ([1, -2, 3],), MAPPED),
    Case(p.Looping, (1,), {*COUNTED, "look_up > stop"}),
    Case(p.Looping, (2,), {"count_up > look_up", "look_up > stop"}),
    Case(p.Looping, (-5,), {*COUNTED, "look_up > give_up"}),
    Case(ways.Grown, (1,), {"back grow > grow", "grow > go_right"}),
    Case(p.AnyOf, (-1,), {"quick > first"}),
    Case(p.TwoOfThree, (-1,), {"quick > two", "other > two"}),
    Case(p.RestCancelled, (1,), {"quick > first"}),
    Case(p.CatchOne, (1,), {"risky > praise"}),
    Case(p.CatchOne, (-1,), {"error risky > explain"}),
    Case(p.CatchGroup, (-1,), {"error risky > explain"}),
    Case(p.CatchMap, ([1, 2],), MAPPED),
    Case(p.CatchMap, ([-2],), {"deal > square", "error square > explain"}),
    Case(p.WithChild, ([1, 2],), {"parity > after_parity"}),
    Case(
        ways.Wide,
        (1,),
        {f"begin > branch_{n}" for n in range(14)}
        | {f"branch_{n} > close" for n in range(14)},
    ),
    Case(
        ways.Choosing,
        (all_of(14), False),
        {f"choose > branch_{n}" for n in range(14)} | {"choose_too > go_right"},
    ),
    Case(
        ways.Choosing,
        (all_of(13), True),
        {f"choose > branch_{n}" for n in range(13)} | {"choose_too > branch_13"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_exactly_the_edges_taken_are_painted(case: Case, press: str) -> None:
    process = finished(case.definition, *case.given)

    assert process.finished_at is not None
    assert taken(process) == case.edges


def test_a_branch_that_runs_on_after_its_join_is_painted_when_it_arrives(
    press: str,
) -> None:
    process = finished(p.RestRuns, 1)
    assert taken(process) == {"quick > first"}

    process = go_on(go_on(process, press))

    assert taken(process) == {
        "quick > first",
        "slow > after_slow",
        "after_slow > first",
    }


def test_what_had_arrived_before_a_group_failed_stays_painted(press: str) -> None:
    process = launch(p.CatchGroup, -1)
    drain(press)

    assert taken(go_on(process)) == {"slow > finish", "error risky > explain"}


def test_of_two_ways_to_the_same_step_the_one_taken_is_painted(
    administrator: User,
) -> None:
    late, refused = finished(Inquiry, "T-1"), finished(Inquiry, "T-2")
    decide(refused, "refuse", administrator)
    pass_time(timedelta(days=3))

    ways = {"late verdict > escalate", "verdict > escalate"}
    assert taken(go_on(late)) & ways == {"late verdict > escalate"}
    assert taken(go_on(refused)) & ways == {"verdict > escalate"}


def test_a_way_given_up_by_a_resume_is_no_longer_painted(
    administrator: User, press: str
) -> None:
    process = finished(ways.Crossing, 1)
    before = process.revision
    decide(process, ways.Way.LEFT, administrator)
    assert taken(go_on(process)) == {"crossing > go_left"}

    operations.resume(process.pk, before, request=asked(administrator))
    assert taken(go_on(process)) == set()

    decide(process, ways.Way.RIGHT, administrator)
    assert taken(go_on(process)) == {"crossing > go_right"}


def test_a_deadline_given_up_by_a_resume_is_not_taken_for_the_way_taken_later(
    administrator: User, press: str
) -> None:
    process = finished(ways.Crossing, 1)
    before = process.revision
    age(timedelta(days=2))
    assert taken(go_on(process)) == {"late crossing > go_left"}

    operations.resume(process.pk, before, request=asked(administrator))
    decide(go_on(process), ways.Way.LEFT, administrator)

    assert taken(go_on(process)) == {"crossing > go_left"}


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


def decide(process: ProcessInstance, choice: str, person: User) -> None:
    run = process.step_runs.get(kind=StepKind.ASK, finished_at=None)
    operations.decide(process.pk, run.pk, choice, request=asked(person))


def asked(person: User) -> ActionRequest:
    return ActionRequest(person, uuid4(), "because")
