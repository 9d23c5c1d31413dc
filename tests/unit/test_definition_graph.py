"""The picture comes from the rows: nodes, edges, labels, fingerprint, what can still happen."""

import json
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

from monitoring.diagrams import transition_table
from orchestrator.definition import ProcessManager, after, ignore, reject, when
from orchestrator.definition.dataflow import flow, reachable
from orchestrator.definition.graph import Edge, Graph, Node
from orchestrator.definition.words import spoken_name
from tests.unit.shop import (
    PAY,
    SEND,
    START,
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
        (e.id, e.source, e.target, e.kind, e.event, e.guard, e.commands, e.escalates)
        for e in edges
    ] == [
        ("e0", "New", "Unpaid", "event", "Ordered", "", (), False),
        (
            "e1",
            "Unpaid",
            "Packing",
            "event",
            "Paid",
            "payment = card",
            ("Pack",),
            False,
        ),
        ("e2", "Unpaid", "Done", "event", "Paid", "payment = cash, invoice", (), False),
        ("e3", "Unpaid", "Unpaid", "deadline", "after 10 minutes", "", (), True),
        ("e4", "Packing", "Done", "event", "Sent", "", (), False),
    ]


def test_a_decision_names_the_edge_that_was_taken() -> None:
    shop = by_payment()
    taken = shop.decide(Step.UNPAID, shop.Data("O-1", CASH), Paid(3)).edge

    assert taken == "e2"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("AwaitingExternalListing", "Awaiting external listing"),
        ("awaiting_listing", "Awaiting listing"),
        ("to-do", "To do"),
        ("Done", "Done"),
        ("", ""),
    ],
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


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    program = (
        "from examples.order_listing.processes import OrderListing as o;"
        "print(o.graph().fingerprint())"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    }

    assert len(prints) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"unpaid": [when(Paid).go_to(Step.PACKING)]},
        {"unpaid": [PAY, when(Returned).issue(Pack)]},
        {"unpaid": [PAY, after(timedelta(minutes=1)).escalate()]},
        {"packing": [SEND.set(gift=True)]},
        {"new": [START.set(payment=CARD)]},
        {"version": 2},
        {"name": "market"},
    ],
    ids=str,
)
def test_whatever_changes_the_picture_changes_the_fingerprint(
    other: dict[str, Any],
) -> None:
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


def test_everything_can_happen_from_the_start() -> None:
    nodes, edges = reachable(by_payment().graph(), "New")

    assert nodes == {"New", "Unpaid", "Packing", "Done"}
    assert edges == {"e0", "e1", "e2", "e3", "e4"}


@pytest.mark.parametrize(
    ("payment", "nodes", "edges"),
    [
        ("card", {"Unpaid", "Packing", "Done"}, {"e1", "e3", "e4"}),
        ("cash", {"Unpaid", "Done"}, {"e2", "e3"}),
    ],
)
def test_the_data_says_what_can_still_happen(
    payment: str, nodes: set[str], edges: set[str]
) -> None:
    data = {"order_id": "O-1", "payment": payment, "parcel": "", "gift": False}

    assert reachable(by_payment().graph(), "Unpaid", data) == (nodes, edges)


def test_nothing_happens_after_the_end() -> None:
    assert reachable(by_payment().graph(), "Done", {}) == ({"Done"}, set())


def test_data_of_any_form_may_be_asked_about() -> None:
    odd = {"lines": [{"a": 1}], "payment": "card", "gone": None}

    assert "e1" in reachable(by_payment().graph(), "Unpaid", odd)[1]


def test_what_an_edge_sets_counts_from_there_on() -> None:
    graph = define(
        unpaid=[
            when(Returned).set(payment=CASH),
            when(Paid, payment=CARD).go_to(Step.PACKING),
            when(Paid).go_to(Step.DONE),
        ]
    ).graph()

    assert reachable(graph, "Unpaid", {"payment": "card"})[0] == {
        "Unpaid",
        "Packing",
        "Done",
    }


# The flow of values


def edge(source: str, target: str, **more: Any) -> Edge:
    return Edge(f"{source}{target}", source, target, "event", "E", **more)


def test_values_meet_where_two_ways_meet() -> None:
    nodes = tuple(Node(name, name, "step") for name in "abcd")
    edges = (
        edge("a", "b", assigns={"x": [1]}),
        edge("a", "c", assigns={"x": [2]}),
        edge("b", "d"),
        edge("c", "d"),
        edge("d", "a", accepts={"x": [3]}),
    )

    values, taken = flow(Graph("g", 1, "k", nodes, edges), "a", {})

    assert values["d"] == {"x": {1, 2}}
    assert "da" not in taken


def test_a_value_that_becomes_anything_is_followed_no_more() -> None:
    nodes = tuple(Node(name, name, "step") for name in "ab")
    edges = (
        edge("a", "b", assigns={"x": None}),
        edge("b", "b", accepts={"x": [3]}),
    )

    values, taken = flow(Graph("g", 1, "k", nodes, edges), "a", {"x": frozenset([1])})

    assert (values["b"], taken) == ({}, {"ab", "bb"})


def test_a_loop_comes_to_an_end() -> None:
    nodes = tuple(Node(name, name, "step") for name in "ab")
    edges = (
        edge("a", "b", assigns={"x": [1]}),
        edge("b", "a", accepts={"x": [1]}, assigns={"x": [2]}),
    )

    values, taken = flow(Graph("g", 1, "k", nodes, edges), "a", {"x": frozenset([0])})

    assert values["a"] == {"x": {0, 2}}
    assert taken == {"ab", "ba"}


def test_starting_and_first_step_are_the_same() -> None:
    assert define().decide(Step.NEW, None, Ordered("O-1", CARD)).edge == "e0"
