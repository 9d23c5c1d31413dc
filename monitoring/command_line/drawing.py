"""`draw`: a definition or a process as a picture, as DOT, or as a table."""

import json
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from monitoring.command_line.selection import USAGE, process_id
from monitoring.diagrams import (
    DiagramState,
    Drawing,
    steps_as_text,
    transition_table,
)
from monitoring.diagrams.layout import LayoutFailed
from monitoring.process.summary import process_drawing
from orchestrator import registry, strict_json
from orchestrator.definition import Workflow
from orchestrator.definition.codec import decode
from orchestrator.definition.graph import Graph
from orchestrator.definition.workflow.plan import Plan
from orchestrator.exceptions import InvalidMessage, UnknownDefinition
from orchestrator.models import Definition


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "name", nargs="?", help="name of the definition, like order-listing"
    )
    parser.add_argument(
        "--process", metavar="ID", help="this process instead, with where it is now"
    )
    parser.add_argument(
        "--input",
        metavar="JSON",
        help='the input from which the definition makes its graph; "-" for standard input',
    )
    parser.add_argument("--format", choices=["svg", "dot", "table"], default="svg")
    parser.add_argument("--version-number", type=int, help="default: the newest")
    parser.add_argument(
        "--output", type=Path, help="file to write; default: standard output"
    )


def draw_definition(out: Any, options: Mapping[str, Any]) -> None:
    """Write the definition or the process to the file of `--output`, else to `out`."""
    text = drawing_text(*asked_for(options), options["format"])
    if options["output"] is None:
        out.write(text, ending="")
        return
    try:
        options["output"].write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(
            f"cannot write {options['output']}: {error.strerror}"
        ) from None


def asked_for(options: Mapping[str, Any]) -> tuple[Graph, DiagramState | None]:
    """Return the graph of the definition or the process, and where the process is now.

    Raises:
        CommandError: both are named, or none.
    """
    name, process, given = options["name"], options["process"], options["input"]
    number = options["version_number"]
    if (name is None) == (process is None):
        raise CommandError(
            "name either a definition or a process: draw NAME, or draw --process ID",
            returncode=USAGE,
        )
    if process is None:
        return graph_of(name, number, given), None
    if given is not None or number is not None:
        raise CommandError(
            "a process has its input and its version: leave --input and --version-number out",
            returncode=USAGE,
        )
    pk = process_id(process)
    found = process_drawing(pk)
    if found is None:
        raise CommandError(f"there is no process {pk}", returncode=USAGE)
    return found


def drawing_text(graph: Graph, state: DiagramState | None, form: str) -> str:
    """Return the graph as `svg`, `dot` or `table`; the first shows the state."""
    if form == "table":
        if graph.kind == Definition.Kind.WORKFLOW:
            return steps_as_text(graph)
        return transition_table(graph).as_text()
    try:
        drawing = Drawing(graph)
    except LayoutFailed as failure:
        raise CommandError(f"{failure}; `--format table` needs no picture") from failure
    return f"{drawing.dot}\n" if form == "dot" else f"{drawing.standalone(state)}\n"


def graph_of(name: str, version: int | None, given: str | None = None) -> Graph:
    """Return the graph of a definition of the running code, else of a stored one.

    Args:
        name: of the definition.
        version: of the definition; None for the newest.
        given: the input from which the definition makes its graph, as JSON.

    Raises:
        CommandError: there is none, or it needs another input.
    """
    try:
        return graph_with(registry.find_definition(name, version), given)
    except UnknownDefinition as unknown:
        rows = Definition.objects.filter(name=name).order_by("-version", "-pk")
        stored = (rows.filter(version=version) if version is not None else rows).first()
        if stored is None:
            raise CommandError(str(unknown)) from None
        return Graph.from_json(stored.graph)


def graph_with(definition: registry.DefinitionClass, given: str | None) -> Graph:
    """Return the graph of a definition, made from the input if it makes one from it.

    Raises:
        CommandError: it has one graph for all inputs, needs an input, or makes no graph from this one.
    """
    name = definition.name
    if not issubclass(definition, Workflow) or definition.static is not None:
        if given is not None:
            raise CommandError(
                f"{name} has one graph for all inputs: leave --input out",
                returncode=USAGE,
            )
        return definition.graph()
    if given is None:
        example = json.dumps(
            dict.fromkeys((f.name for f in fields(definition.Input)), "…"),
            ensure_ascii=False,
        )
        raise CommandError(
            f"{name} makes its graph from the input: give one with --input '{example}', "
            "or draw one of its processes with --process ID",
            returncode=USAGE,
        )
    return definition.graph(_plan_for(definition, given))


def _plan_for(definition: type[Workflow], given: str) -> Plan:
    raw = sys.stdin.buffer.read() if given == "-" else given.encode("utf-8", "replace")
    try:
        input = decode(definition.Input, strict_json.parse(raw))
    except InvalidMessage as error:
        raise CommandError(
            f"--input is no input of {definition.name}: {error}", returncode=USAGE
        ) from None
    try:
        return definition.plan(input)
    except Exception as error:  # the application's own function
        told = f"{type(error).__name__}: {error}"
        raise CommandError(
            f"{definition.name} makes no graph from this input: {told}"
        ) from error
