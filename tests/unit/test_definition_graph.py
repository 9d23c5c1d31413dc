"""The graph of a definition's rows: nodes, edges, labels, fingerprint, reachable steps."""

import json
from datetime import timedelta
from typing import Any

from monitoring.diagrams import transition_table
from orchestrator.definition import ProcessManager, after, ignore, reject, when
from orchestrator.definition.dataflow import follow_edges, reachable
from orchestrator.definition.graph import Edge, Graph, Node
from orchestrator.definition.labels import spoken_name
from tests.services.cases import cases
from tests.unit.shop import (
    PAY,
    SEND,
    START,
    Data,
    Ordered,
    Pack,
    Paid,
    Payment,
    Returned,
    Sent,
    Step,
    define,
)

CARD, CASH, INVOICE = Payment.CARD, Payment.CASH, Payment.INVOICE


def by_payment() -> type[ProcessManager]:
    """Cards are packed, cash and invoices are done at once."""
    return define(
        unpaid=[
            when(Paid, payment=CARD).issue(Pack).go_to(Step.PACKING),
            when(Paid, payment=[CASH, INVOICE]).go_to(Step.DONE),
            after(timedelta(minutes=10)).escalate(),
            ignore(Returned),
            reject(Sent),
        ]
    )


# Nodes and edges


def test_every_step_is_a_node() -> None:
    assert define().graph().nodes == (
        Node("New", "New", "start"),
        Node("Unpaid", "Unpaid", "step"),
        Node("Packing", "Packing", "step"),
        Node("Done", "Done", "final"),
    )


def test_every_row_that_moves_is_an_edge_with_a_label_in_three_parts() -> None:
    edges = by_payment().graph().edges

    assert [
        (e.id, e.source, e.target, e.kind, e.event, e.guard, e.commands) for e in edges
    ] == [
        ("e0", "New", "Unpaid", "event", "Ordered", "", ()),
        ("e1", "Unpaid", "Packing", "event", "Paid", "payment = card", ("Pack",)),
        ("e2", "Unpaid", "Done", "event", "Paid", "payment = cash, invoice", ()),
        ("e3", "Unpaid", "Unpaid", "deadline", "after 10 minutes", "", ()),
        ("e4", "Packing", "Done", "event", "Sent", "", ()),
    ]
    assert [e.id for e in edges if e.escalates] == ["e3"]


def test_a_decision_names_the_edge_that_was_taken() -> None:
    shop, data = by_payment(), Data("O-1", CASH)

    assert shop.decide(Step.UNPAID, data, Paid(3)).edge == "e2"
    assert shop.decide(Step.NEW, None, Ordered("O-1", CARD)).edge == "e0"


@cases(
    "name, label",
    ("AwaitingExternalListing", "Awaiting external listing"),
    ("awaiting_listing", "Awaiting listing"),
    ("to-do", "To do"),
    ("Done", "Done"),
    ("", ""),
)
def test_a_step_is_labelled_as_people_say_it(name: str, label: str) -> None:
    assert spoken_name(name) == label


# Stored


def test_a_stored_graph_comes_back_as_it_was() -> None:
    graph = by_payment().graph()

    stored = json.loads(json.dumps(graph.to_json()))
    assert Graph.from_json(stored) == graph
    assert Graph.from_json(stored).fingerprint() == graph.fingerprint()


def test_equal_definitions_have_equal_fingerprints() -> None:
    assert define().graph().fingerprint() == define().graph().fingerprint()


@cases(
    "other",
    {"unpaid": [when(Paid).go_to(Step.PACKING)]},
    {"unpaid": [PAY, when(Returned).issue(Pack)]},
    {"unpaid": [PAY, after(timedelta(minutes=1)).escalate()]},
    {"packing": [SEND.set(gift=True)]},
    {"new": [START.set(payment=CARD)]},
    {"version": 2},
    {"name": "market"},
)
def test_what_changes_a_picture_changes_the_fingerprint(other: dict[str, Any]) -> None:
    assert define().graph().fingerprint() != define(**other).graph().fingerprint()


# The table


def test_the_table_has_a_row_a_step_and_a_column_an_event_or_deadline() -> None:
    text = transition_table(by_payment().graph()).as_text()

    by_card = "[payment = card] / Pack → Packing"
    otherwise = "[payment = cash, invoice] → Done"
    assert text.splitlines()[:5] == [
        "| step | Ordered | Paid | after 10 minutes | Sent | Returned |",
        "| --- | --- | --- | --- | --- | --- |",
        "| New | → Unpaid |  |  |  |  |",
        f"| Unpaid |  | {by_card}<br>{otherwise} | / escalate → Unpaid | rejected | ignored |",
        "| Packing |  |  |  | → Done |  |",
    ]


def test_a_row_that_stays_leads_to_its_own_step_in_the_table() -> None:
    shop = define(unpaid=[PAY, when(Returned).issue(Pack)])

    assert "/ Pack → Unpaid" in transition_table(shop.graph()).as_text()


# What can still happen


BY_CARD = {"order_id": "O-1", "payment": "card", "parcel": "", "gift": False}


@cases(
    "step, data, nodes, edges",
    # every edge is reachable from the start, and none after the end
    ("New", None, "New Unpaid Packing Done", "e0 e1 e2 e3 e4"),
    ("Done", {}, "Done", ""),
    # the data says what can still happen
    ("Unpaid", BY_CARD, "Unpaid Packing Done", "e1 e3 e4"),
    ("Unpaid", {**BY_CARD, "payment": "cash"}, "Unpaid Done", "e2 e3"),
    # whatever its form
    (
        "Unpaid",
        {"lines": [{"a": 1}], "payment": "card", "gone": None},
        *("Unpaid Packing Done", "e1 e3 e4"),
    ),
)
def test_it_is_known_what_can_still_happen(
    step: str, data: dict[str, Any] | None, nodes: str, edges: str
) -> None:
    found = reachable(by_payment().graph(), step, data)

    assert found == (set(nodes.split()), set(edges.split()))


def test_what_an_edge_sets_counts_from_there_on() -> None:
    graph = define(
        unpaid=[
            when(Returned).set(payment=CASH),
            when(Paid, payment=CARD).go_to(Step.PACKING),
            when(Paid).go_to(Step.DONE),
        ]
    ).graph()

    nodes, _ = reachable(graph, "Unpaid", {"payment": "card"})
    assert nodes == {"Unpaid", "Packing", "Done"}


# The flow of values


def edge(source: str, target: str, **more: Any) -> Edge:
    return Edge(f"{source}{target}", source, target, "event", "E", **more)


@cases(
    "begins, edges, at, values, taken",
    # values meet where two ways meet
    (
        {},
        [
            edge("a", "b", assigns={"x": [1]}),
            edge("a", "c", assigns={"x": [2]}),
            *(edge("b", "d"), edge("c", "d"), edge("d", "a", accepts={"x": [3]})),
        ],
        *("d", {"x": {1, 2}}, "ab ac bd cd"),
    ),
    # a value that may become anything is unknown from then on
    (
        {"x": frozenset([1])},
        [edge("a", "b", assigns={"x": None}), edge("b", "b", accepts={"x": [3]})],
        *("b", {}, "ab bb"),
    ),
    # a loop comes to an end
    (
        {"x": frozenset([0])},
        [
            edge("a", "b", assigns={"x": [1]}),
            edge("b", "a", accepts={"x": [1]}, assigns={"x": [2]}),
        ],
        *("a", {"x": {0, 2}}, "ab ba"),
    ),
)
def test_values_flow_along_the_edges(
    begins: dict[str, Any], edges: list[Edge], at: str, values: Any, taken: str
) -> None:
    nodes = tuple(Node(name, name, "step") for name in "abcd")

    found, ways = follow_edges(Graph("g", 1, "k", nodes, tuple(edges)), "a", begins)

    assert (found[at], ways) == (values, set(taken.split()))
