"""Graphviz in processes of its own: it may refuse, hang or die, and the next picture is drawn all the same."""

import logging
from collections.abc import Iterator

import pytest

from monitoring.diagrams import Drawing, cache, layout
from monitoring.diagrams.dot import quote_label
from monitoring.diagrams.layout import GraphvizProcess, LayoutFailed
from orchestrator.definition.graph import Edge, Graph, Node

DOT = 'digraph { a [label="hello"]; b [label="you"]; a -> b }'


@pytest.fixture
def layouts() -> Iterator[GraphvizProcess]:
    layouts = GraphvizProcess()
    yield layouts
    layouts.end()


def test_a_process_draws_one_picture_after_the_other(layouts: GraphvizProcess) -> None:
    first = layouts.lay_out(DOT)
    process = layouts._process
    assert ">hello</text>" in first
    assert layouts.lay_out(DOT) == first
    assert layouts._process is process


def test_what_graphviz_refuses_is_told_and_it_goes_on(layouts: GraphvizProcess) -> None:
    with pytest.raises(LayoutFailed, match="Graphviz could not draw a diagram: "):
        layouts.lay_out("digraph { a -> ")
    assert ">hello</text>" in layouts.lay_out(DOT)


def test_after_a_process_died_another_draws(layouts: GraphvizProcess) -> None:
    layouts.lay_out(DOT)
    assert layouts._process is not None
    layouts._process.kill()
    layouts._process.wait()
    assert ">hello</text>" in layouts.lay_out(DOT)


def test_layouts_end(layouts: GraphvizProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "PATIENCE", 0.05)
    links = " ".join(f"n{a} -> n{b};" for a in range(120) for b in range(a + 1, 120, 3))
    with pytest.raises(LayoutFailed, match="Graphviz ended with -9"):
        layouts.lay_out(f"digraph {{ {links} }}")
    monkeypatch.undo()
    assert ">hello</text>" in layouts.lay_out(DOT)


def test_the_process_ends_with_ours(layouts: GraphvizProcess) -> None:
    layouts.lay_out(DOT)
    process = layouts._process
    layouts.end()
    assert process is not None
    assert process.returncode == 0


def test_no_line_of_a_label_is_empty() -> None:
    assert quote_label(["", "a", ""]) == "\N{NO-BREAK SPACE}\\na\\n\N{NO-BREAK SPACE}"
    assert quote_label([""], "\\l") == "\N{NO-BREAK SPACE}\\l"


def test_pages_go_without_a_picture_that_cannot_be_drawn(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def die(dot: str) -> str:
        raise LayoutFailed("Graphviz ended with -11")

    monkeypatch.setattr(Drawing.__init__, "__defaults__", (None, die))
    nodes = (Node("a", "A", "step", entry=True), Node("b", "B", "step"))
    graph = Graph("drawn", 1, "workflow", nodes, (Edge("e0", "a", "b", "flow"),))

    with caplog.at_level(logging.ERROR):
        drawing = cache.drawing_of(graph, "one-that-cannot-be-drawn")

    assert drawing.failed
    assert "<text" not in drawing.svg(linked=True, label="A diagram")
    assert "Graphviz ended with -11" in caplog.text
