"""A workflow's graph shows every pattern, and is always the same."""

# These steps are declared and never run.
# mypy: disable-error-code="empty-body"

import json
import sys
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from orchestrator.definition import (
    Workflow,
    ask,
    case,
    catch,
    each,
    fork,
    ignore,
    join,
    needs,
    park,
    reject,
    repeat,
    route,
    run,
    start,
    step,
    then,
    undo,
    wait,
)
from orchestrator.definition.graph import Disposition, Edge, Graph, Node
from tests.services.cases import cases
from tests.services.python import printed
from tests.unit.workflows import (
    Approved,
    Input,
    Medium,
    Priority,
    define,
    enough,
    huge,
    large,
    look,
    steps,
    work,
)

a, b, c, d, e, x = steps("a b c d e x")
HUGE_FIRST = case(huge, to=b, priority=10)


def graph_of(*rows: Any) -> Graph:
    return define(*rows).graph()


def node(graph: Graph, name: str) -> Node:
    (found,) = (node for node in graph.nodes if node.id == name)
    return found


def edge(graph: Graph, source: str, target: str) -> Edge:
    onward = [edge for edge in graph.edges if edge.kind != "repeat"]
    [found] = [one for one in onward if (one.source, one.target) == (source, target)]
    return found


def test_nodes_are_steps_and_edges_lead_from_one_to_the_next() -> None:
    graph = graph_of(then(step(work, "read_the_text"), b))

    assert (graph.kind, graph.name, graph.version) == ("workflow", "flow", 1)
    assert graph.nodes[0] == Node("read_the_text", "Read the text", "step", entry=True)
    assert edge(graph, "read_the_text", "b").kind == "flow"


def test_a_graph_is_stored_and_read_again() -> None:
    graph = graph_of(fork(a, into=[b, c]), join(b, c, into=d, wait_for="any"))

    assert Graph.from_json(json.loads(json.dumps(graph.to_json()))) == graph


@cases(
    "policy, shown",
    ({}, ""),
    ({"wait_for": "any"}, "any"),
    ({"wait_for": 2}, "2 of 3"),
    ({"on_failure": "fail_fast"}, "fail fast"),
    ({"wait_for": "any", "rest": "cancel"}, "any"),
)
def test_a_join_shows_what_it_waits_for(policy: dict[str, Any], shown: str) -> None:
    graph = graph_of(fork(a, into=[b, c, d]), join(b, c, d, into=e, **policy))

    assert node(graph, "e").join == shown


@cases(
    "rows, ways",
    # branches show the value or the condition they are taken for
    (
        [
            fork(look, on="media", into={Medium.TEXT: a}, otherwise=b),
            fork(look, into=[c, case(large, to=d)]),
        ],
        "a case media has text; b default otherwise; c flow ; d case large",
    ),
    # cases stand in the order they are tried
    (
        [route(look, case(large, to=a, priority=5), HUGE_FIRST, otherwise=c)],
        "b case huge (10); a case large (5); c default otherwise",
    ),
    (
        [route(look, on="priority", to={Priority.LOW: a, Priority.URGENT: b})],
        "a case priority is low; b case priority is urgent",
    ),
)
def test_ways_show_what_they_are_taken_for(rows: list[Any], ways: str) -> None:
    edges = graph_of(*rows).edges

    assert "; ".join(f"{e.target} {e.kind} {e.guard}" for e in edges) == ways


def test_a_loop_shows_its_way_back_its_condition_and_its_bound() -> None:
    graph = graph_of(repeat(a, b, until=enough, at_most=4, then=c, otherwise=d))

    (back,) = (edge for edge in graph.edges if edge.kind == "repeat")
    assert (back.source, back.target) == ("b", "a")
    assert "until enough, at most 4" in back.guard
    onward, late = edge(graph, "b", "c"), edge(graph, "b", "d")
    assert (onward.kind, onward.guard, late.kind) == ("case", "enough", "default")


def double(item: int) -> int: ...


class Reading(Workflow):
    @dataclass(frozen=True)
    class Input:
        item: int

    flow = (a,)


@cases(
    "do, more, detail",
    (double, {}, "each of pages"),
    (double, {"window": 4}, "each of pages, 4 at once"),
    (double, {"tolerate": 2}, "each of pages, 2 may fail"),
    (double, {"window": 4, "tolerate": 0.05}, "each of pages, 4 at once, 5% may fail"),
    # one of sub-processes names what it runs
    (run(Reading, "double"), {"window": 2}, "reading for each of pages, 2 at once"),
)
def test_a_map_is_one_node(do: Any, more: dict[str, Any], detail: str) -> None:
    graph = graph_of(each(look, over="pages", do=do, into=a, **more))

    assert (node(graph, "double").kind, node(graph, "double").detail) == ("map", detail)


class Verdict(StrEnum):
    YES = "approve"
    NO = "reject"


class Child(Workflow):
    flow = (a,)


DAYS = timedelta(days=2)


@cases(
    "waiting, kind, detail",
    (wait(Approved, "w"), "wait", "for Approved"),
    (wait(Approved, "w", deadline=DAYS), "wait", "for Approved, at most 2 days"),
    (
        wait(Approved, "w", by="Ito", otherwise=reject, deadline=DAYS),
        "wait",
        "for Approved [by = Ito], else rejected, at most 2 days",
    ),
    (
        wait(Approved, "w", by="Ito", otherwise=park),
        "wait",
        "for Approved [by = Ito], else parked",
    ),
    (ask("w", Verdict), "ask", "approve or reject"),
    (ask("w", Verdict, deadline=DAYS), "ask", "approve or reject, at most 2 days"),
    (run(Child, "w"), "run", "child"),
)
def test_what_a_step_waits_for_is_said(waiting: Any, kind: str, detail: str) -> None:
    shown = node(graph_of(then(a, waiting)), "w")

    assert (shown.kind, shown.detail) == (kind, detail)


def test_the_row_that_ignores_late_events_is_drawn_and_counts_for_the_fingerprint() -> (
    None
):
    plain, ignoring = (
        graph_of(then(a, wait(Approved, "w")), *rows)
        for rows in ((), (ignore(Approved),))
    )
    assert node(ignoring, "w").detail == "for Approved, ignored when late"
    assert ignoring.dispositions == (Disposition("", "Approved", "ignore"),)
    assert plain.dispositions == ()
    assert plain.fingerprint() != ignoring.fingerprint()
    assert Graph.from_json(ignoring.to_json()) == ignoring


def test_a_wait_without_these_words_has_the_fingerprint_of_before() -> None:
    graph = graph_of(then(a, wait(Approved, "w", by="Ito", deadline=DAYS), b))
    assert node(graph, "w").detail == "for Approved [by = Ito], at most 2 days"
    assert graph.fingerprint() == (
        "48efc93b7cdad018d1cc47ea90bd070a3e473230d48217c45dee796fb3018e8e"
    )


def test_ways_after_a_failure_or_a_deadline_are_marked() -> None:
    graph = graph_of(
        then(wait(Approved, "w", deadline=DAYS, late=x), a),
        catch(a, error=ValueError, to=b),
    )

    late, error = edge(graph, "w", "x"), edge(graph, "a", "b")
    assert (late.kind, late.event) == ("deadline", "after 2 days")
    assert (error.kind, error.event) == ("error", "ValueError")


def take_back(a: int) -> None:
    """Undo."""


def test_what_undoes_a_step_is_shown_on_it() -> None:
    assert node(graph_of(then(a, b), undo(a, by=take_back)), "a").undo == "take_back"


def test_all_steps_that_begin_are_entries() -> None:
    graph = graph_of(start(a, b), needs(c, [a, b]))

    assert [n.id for n in graph.nodes if n.entry] == ["a", "b"]


def test_the_fingerprint_tells_of_rows_not_of_policies() -> None:
    graph = graph_of(then(a, b))

    assert graph_of(then(a, b)).fingerprint() == graph.fingerprint()
    assert graph_of(then(a, step(work, "b", retries=9))) == graph
    assert graph_of(then(a, c)).fingerprint() != graph.fingerprint()
    assert replace(graph, version=2).fingerprint() != graph.fingerprint()


def test_a_graph_that_comes_with_the_input_is_drawn_from_its_plan() -> None:
    def flow(input: Input) -> Any:
        return [then(a, b)]

    made = define(flow=flow)

    assert made.graph().nodes == ()
    assert [n.id for n in made.graph(made.plan(Input("T-1"))).nodes] == ["a", "b"]


SCRIPT = """
from tests.unit.workflows import *
from orchestrator.definition import *
from examples.order_listing.processes import OrderListing
a, b, c, d = steps("a b c d")
branches = {Medium.TEXT: a, Medium.IMAGE: b, Medium.AUDIO: c}
rows = fork(look, on="media", into=branches), join(a, b, c, into=d, rest="cancel", wait_for="any")
print(define(*rows).graph().fingerprint(), OrderListing.graph().fingerprint())
"""


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    """That of a workflow and of a process manager."""
    path = ":".join(sys.path)
    told = {printed(SCRIPT, PYTHONHASHSEED=seed, PYTHONPATH=path) for seed in "12"}

    assert len(told) == 1
