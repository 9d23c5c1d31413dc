"""The result of a workflow that has completed, as the process that it is a part of gets it."""

from __future__ import annotations

from typing import Any

from monitoring.masking import masked, names_of
from monitoring.queries.graphs import graph_of
from orchestrator.models import (
    Definition,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)

MOST = 1_000
"""Elements of a map whose results are told; of more, the file of its elements has them."""


def result_of(instance: ProcessInstance) -> Any:
    """The result of its last step, or of several by their names, without what is secret; None where it has none."""
    definition = instance.definition
    if (
        definition.kind != Definition.Kind.WORKFLOW
        or instance.status != Status.COMPLETED
    ):
        return None
    graph = graph_of(definition)
    left = {e.source for e in graph.edges if e.kind not in ("error", "deadline")}
    last = {node.id: node.kind for node in graph.nodes if node.id not in left}
    given = (StepStatus.DONE, StepStatus.SKIPPED)
    rows = StepRun.objects.filter(instance=instance.pk, node__in=last, status__in=given)
    rows = rows.exclude(kind__in=[StepKind.UNDO, StepKind.JOIN])
    whole = rows.filter(item=None).order_by("visit", "round")
    found = {run.node: run.result for run in whole.defer("element", "saved")}
    for node in found:
        if last[node] == "map":
            found[node] = _of_elements(rows.filter(node=node))
    told = masked(found, names_of(definition))
    return next(iter(told.values()), None) if len(last) == 1 else told


def _of_elements(rows: Any) -> list[Any] | None:
    """The results of a map's last visit, in the order of its elements."""
    visit = rows.order_by("-visit").values_list("visit", flat=True).first()
    elements = rows.filter(visit=visit, item__isnull=False).order_by("item", "round")
    found = dict(elements.values_list("item", "result")[: MOST + 1])
    return list(found.values()) if len(found) <= MOST else None
