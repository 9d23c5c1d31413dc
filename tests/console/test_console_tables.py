"""The transition table: every event in every step has its answer, also where nothing moves."""

import pytest

from monitoring.command_line.drawing import drawing_text
from monitoring.diagrams import transition_table
from orchestrator.definition.graph import Graph
from tests.apps.process_managers.processes import Shipping
from tests.services.client import Client
from tests.services.drawn import stored

GRAPH = Shipping.graph()


def answers(graph: Graph, step: str) -> dict[str, str]:
    """What the table says of a step's events that it does not move for."""
    rows = {node.id: cells for node, cells in transition_table(graph).rows}
    return {
        cell.column: ", ".join(said for _, said in cell.otherwise)
        for cell in rows[step]
        if not cell.moves
    }


@pytest.mark.parametrize("graph", [GRAPH, Graph.from_json(GRAPH.to_json())])
def test_the_table_says_which_events_a_step_ignores_and_rejects(graph: Graph) -> None:
    """Also that of a stored definition."""
    parked = ("ParcelOrdered", "ParcelScanned", "CourierBooked", "ParcelDelivered")
    assert answers(graph, "Packing") == {
        **dict.fromkeys((*parked, "after 3 days"), ""),
        "ParcelWeighed": "ignored",
        "LabelTorn": "rejected",
    }


def test_the_picture_has_no_edge_for_what_changes_nothing() -> None:
    assert "ParcelWeighed" not in drawing_text(GRAPH, None, "svg")


def test_the_table_as_text_says_it_too() -> None:
    lines = drawing_text(GRAPH, None, "table").splitlines()

    assert lines[3].startswith("| Packing |")
    assert lines[3].endswith("| ignored | rejected |")
    assert "An event whose cell is empty is parked" in lines[-2]


@pytest.mark.django_db
def test_the_page_shows_them_and_says_what_an_empty_cell_means(viewing: Client) -> None:
    stored(GRAPH)

    text = viewing.read(f"/definitions/{GRAPH.name}/")

    table = text.partition('class="transitions"')[2].partition("</section>")[0]
    packing = table.partition('<th scope="row">Packing</th>')[2].partition("</tr>")[0]
    for column, word in (("ParcelWeighed", "Ignored"), ("LabelTorn", "Rejected")):
        cell = packing.partition(f'data-label="{column}"')[2].partition("</td>")[0]
        assert cell.rstrip().endswith(f"{word}</div>")
    assert "An event whose cell is empty is parked" in table
    assert '<th scope="col">Parcel<wbr>Weighed</th>' in table
