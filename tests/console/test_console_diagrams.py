"""Pictures: what is drawn is what was declared, and no text leaves its place."""

import re
from collections.abc import Iterator
from io import StringIO
from uuid import uuid4
from xml.etree import ElementTree as ET

import pytest
from django.core.management import CommandError, call_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples.order_listing.processes import OrderListing
from monitoring.diagrams import DiagramState, Drawing, NodeState, transition_table
from orchestrator import start_process
from orchestrator.definition.graph import Edge, Graph, Node
from orchestrator.testing import run
from tests.apps.made_from_input.processes import File, Housekeeping
from tests.apps.process_managers.fixtures import known
from tests.browser.samples import HARMFUL
from tests.services.cases import cases, words

TAGS = set(words("""svg g path polygon polyline ellipse text title circle rect a"""))
ATTRIBUTES = {
    "viewBox", "class", "width", "height", "transform", "id", "data-node", "data-edge", "data-len", "d", "points",
    "x", "y", "cx", "cy", "r", "rx", "ry", "text-anchor", "font-size", "role", "aria-label", "href",
}  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(HARMFUL),
    st.text(min_size=1, max_size=40),
    st.text(alphabet='\\"<>&;{}[]|\n\r\t\x00lnrGNTEH%', min_size=1, max_size=30),
)


def graph(*texts: str) -> Graph:
    """Two steps and a loop whose every text is given."""
    label, event, guard, command = (*texts, "x", "x", "x", "x")[:4]
    nodes = (Node(label, label, "start"), Node("Last", "Last", "final"))
    edges = (
        Edge("e0", label, "Last", "event", event, guard, (command, event)),
        Edge("e1", label, label, "deadline", event, guard, (), True),
    )
    return Graph("drawn", 1, "process_manager", nodes, edges)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TEXTS, min_size=4, max_size=4))
def test_no_text_becomes_anything_but_text(texts: list[str]) -> None:
    drawn = graph(*texts)

    picture = ET.fromstring(Drawing(drawn).svg(linked=True, label=texts[0]))  # noqa: S314

    assert {element.tag for element in picture.iter()} <= TAGS
    assert {name for element in picture.iter() for name in element.attrib} <= ATTRIBUTES
    links = [element.get("href", "") for element in picture.iter("a")]
    assert all(link.startswith("?step=") for link in links)
    groups = [g for g in picture.iter("g") if g.get("data-node") or g.get("data-edge")]
    assert len(groups) == len(drawn.nodes) + len(drawn.edges)


def test_labels_are_in_uml_order() -> None:
    picture = ET.fromstring(Drawing(OrderListing.graph()).svg())  # noqa: S314
    lines = {
        " ".join(text.text or "" for text in group.iter("text"))
        for group in picture.iter("g")
        if group.get("data-edge")
    }

    row = "OrderCreated [destination = both, external] / RequestExternalCreation"
    assert {row, "after 10 minutes / escalate"} <= lines


def test_every_step_has_a_stable_id_and_places_for_mark_and_badges() -> None:
    picture = ET.fromstring(Drawing(OrderListing.graph()).svg())  # noqa: S314

    for node in OrderListing.graph().nodes:
        parts = picture.findall(f".//g[@id='n_{node.id}']/g")
        kinds = [part.get("class") for part in parts]
        assert kinds == ["mark", "badge bad", "badge count"]


def test_painting_moves_nothing() -> None:
    drawing = Drawing(OrderListing.graph())
    state = DiagramState(
        {"Completed": NodeState(("is-done",), "12", "3", "twelve")},
        {"e0": ("is-done",)},
    )

    plain, painted = drawing.svg(), drawing.svg(state)

    places = r' (?:d|points|x|y|transform|viewBox)="[^"]*"'
    assert re.findall(places, plain) == re.findall(places, painted)
    assert plain != painted


def test_two_steps_of_like_names_have_ids_of_their_own() -> None:
    first, second = Node("a b", "a b", "start"), Node("a-b", "a-b", "step")
    nodes = (first, second, Node("é", "é", "final"))

    picture = Drawing(Graph("likes", 1, "process_manager", nodes, ())).svg()

    assert len(set(re.findall(r' id="(n_[^"]+)"', picture))) == 3


def test_the_table_has_a_cell_for_every_edge() -> None:
    graph = OrderListing.graph()

    cells = [cell for _, cells in transition_table(graph).rows for cell in cells]

    drawn = sorted(edge.id for cell in cells for edge, _ in cell.moves)
    assert drawn == sorted(edge.id for edge in graph.edges)


@pytest.mark.django_db
def test_the_command_draws_and_says_which_definitions_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    forms = {"svg": "<?xml", "dot": "digraph", "table": "| step | OrderCreated |"}
    for form, beginning in forms.items():
        call_command("draw", "order-listing", "--format", form)
        assert capsys.readouterr().out.startswith(beginning)
    with pytest.raises(CommandError, match="order-listing"):
        call_command("draw", "nothing", stdout=StringIO())


COPY = '{"name": "one", "action": "copy", "retries": 0, "more": 1}'


@pytest.fixture(scope="module")
def made() -> Iterator[None]:
    """Have a workflow known that makes its graph from its input."""
    yield from known(Housekeeping)


def drawn(*words: str) -> str:
    """Return what `draw` writes as DOT."""
    out = StringIO()
    call_command("draw", *words, "--format", "dot", stdout=out)
    return out.getvalue()


def why_not_drawn(*words: str) -> str:
    with pytest.raises(CommandError) as refused:
        call_command("draw", *words, stdout=StringIO())
    assert refused.value.returncode > 0
    return str(refused.value)


@pytest.mark.usefixtures("made")
def test_a_graph_made_from_the_input_is_not_drawn_without_one() -> None:
    assert why_not_drawn("housekeeping") == (
        "housekeeping makes its graph from the input: give one with "
        """--input '{"name": "…", "action": "…", "retries": "…", "more": "…"}', or """
        "draw one of its processes with --process ID"
    )


@pytest.mark.usefixtures("made")
def test_a_graph_made_from_the_input_is_drawn_with_one() -> None:
    assert "label=N0" in drawn("housekeeping", "--input", COPY)
    assert "label=N1" not in drawn("housekeeping", "--input", COPY)


@pytest.mark.usefixtures("made")
@cases(
    "words, why",
    (["housekeeping", "--input", "{}"], "--input is no input of housekeeping: "),
    (["housekeeping", "--input", "{"], "--input is no input of housekeeping: "),
    (["order-listing", "--input", "{}"], "one graph for all inputs"),
    ([], "name either a definition or a process"),
    (["housekeeping", "--process", "1"], "name either a definition or a process"),
    (["--process", "1"], "is no process id"),
    (["--process", str(uuid4()), "--input", "{}"], "leave --input"),
)
def test_what_draw_cannot_draw_it_refuses_in_a_sentence(
    words: list[str], why: str
) -> None:
    assert why in why_not_drawn(*words)


@pytest.mark.usefixtures("made")
def test_an_error_of_the_function_that_makes_the_graph_is_told() -> None:
    unknown = COPY.replace("copy", "burn")

    said = why_not_drawn("housekeeping", "--input", unknown)

    assert said == "housekeeping makes no graph from this input: KeyError: 'burn'"


@pytest.mark.django_db
@pytest.mark.usefixtures("made")
def test_a_process_is_drawn_with_its_own_graph_and_where_it_is() -> None:
    process = start_process(Housekeeping, File("one", more=1)).process_id
    run()

    own = drawn("--process", str(process))
    assert own == drawn("housekeeping", "--input", COPY)
    out = StringIO()
    call_command("draw", "--process", str(process), stdout=out)
    assert "is-waiting" in out.getvalue()


@pytest.mark.django_db
def test_of_an_unknown_process_nothing_is_drawn() -> None:
    assert "there is no process" in why_not_drawn("--process", str(uuid4()))
