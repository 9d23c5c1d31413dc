"""`draw`: a definition as a picture, as DOT, or as a table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from monitoring.diagrams import Drawing, steps_as_text, transition_table
from monitoring.diagrams.layout import LayoutFailed
from orchestrator import registry
from orchestrator.definition.graph import Graph
from orchestrator.exceptions import UnknownDefinition
from orchestrator.models import Definition


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("name", help="name of the definition, like order-listing")
    parser.add_argument("--format", choices=["svg", "dot", "table"], default="svg")
    parser.add_argument("--version-number", type=int, help="default: the newest")
    parser.add_argument(
        "--output", type=Path, help="file to write; default: standard output"
    )


def draw_definition(out: Any, options: Mapping[str, Any]) -> None:
    """Write the definition to the file of `--output`, else to `out`."""
    graph = graph_of(options["name"], options["version_number"])
    text = drawing_text(graph, options["format"])
    if options["output"] is None:
        out.write(text, ending="")
        return
    try:
        options["output"].write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(
            f"cannot write {options['output']}: {error.strerror}"
        ) from None


def drawing_text(graph: Graph, form: str) -> str:
    """Return the graph as `svg`, `dot` or `table`."""
    if form == "table":
        if graph.kind == Definition.Kind.WORKFLOW:
            return steps_as_text(graph)
        return transition_table(graph).as_text()
    try:
        drawing = Drawing(graph)
    except LayoutFailed as failure:
        raise CommandError(f"{failure}; `--format table` needs no picture") from failure
    return f"{drawing.dot}\n" if form == "dot" else f"{drawing.standalone()}\n"


def graph_of(name: str, version: int | None) -> Graph:
    """Return the graph of a definition of the running code, else of a stored one.

    Raises:
        CommandError: there is none.
    """
    try:
        return registry.find_definition(name, version).graph()
    except UnknownDefinition as unknown:
        rows = Definition.objects.filter(name=name).order_by("-version", "-pk")
        stored = (rows.filter(version=version) if version is not None else rows).first()
        if stored is None:
            raise CommandError(str(unknown)) from None
        return Graph.from_json(stored.graph)
