"""What an operator can choose from where a workflow asks for a decision."""

from monitoring.queries.graphs import running_plan
from orchestrator.definition.graph import Node
from orchestrator.models import Definition


def choices_of(definition: Definition, name: str, node: Node | None) -> tuple[str, ...]:
    """The choices of a step: of the running code, else as the stored graph says them."""
    plan = running_plan(definition)
    known = plan.vertices.get(name) if plan else None
    if known is not None and known.step.choices is not None:
        return tuple(choice.value for choice in known.step.choices)
    said = node.detail.partition(", at most ")[0] if node else ""
    return tuple(said.split(" or ")) if said else ()
