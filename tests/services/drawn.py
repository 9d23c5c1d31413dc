"""Graphs of definitions as the engine keeps them."""

from orchestrator.definition.graph import Graph
from orchestrator.models import Definition


def stored(graph: Graph) -> Definition:
    """Return the new row of a definition that has this graph."""
    mark, row = graph.fingerprint(), {"graph": graph.to_json(), "kind": graph.kind}
    about = {"name": graph.name, "version": graph.version, "fingerprint": mark}
    definition: Definition = Definition.objects.create(**about, **row)
    return definition
