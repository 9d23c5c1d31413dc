"""The steps of a workflow as a table: what each does, what comes next, how it is run. From the graph and the code."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.diagrams import words
from monitoring.diagrams.sketch import Part
from monitoring.queries.definition.standing import StepCounts
from monitoring.queries.graphs import running_plan
from orchestrator.collecting import gathered
from orchestrator.definition.graph import Edge, Graph, Node
from orchestrator.definition.workflow.steps import Policy
from orchestrator.models import Definition

PAGE = 100

MANY = 6
"""Ways on that one row names."""


@dataclass(frozen=True)
class StepRow:
    """One step: the ways that lead on from it with their labels, how it is run, the live instances in it."""

    node: Node
    onward: list[tuple[Edge, str]]
    more: int
    policy: list[str]
    live: int
    unsure: bool
    """Whether there may be more of them."""

    @property
    def number(self) -> str:
        return f"{self.live}{'+' if self.unsure else ''}"

    @property
    def needed(self) -> str:
        return words.needed(self.node.join)


@dataclass(frozen=True)
class StepPage:
    """Some of the steps, and the numbers of the pages beside these; `group` is the part that they are narrowed to."""

    rows: list[StepRow]
    search: str
    number: int
    found: int
    whole: int
    group: Part | None = None

    @property
    def newer(self) -> int | None:
        return self.number - 1 if self.number > 1 else None

    @property
    def older(self) -> int | None:
        return self.number + 1 if self.number * PAGE < self.found else None

    @property
    def first(self) -> int:
        return (self.number - 1) * PAGE + 1

    @property
    def last(self) -> int:
        return min(self.number * PAGE, self.found)


def step_page(
    definition: Definition,
    graph: Graph,
    standing: StepCounts,
    search: str,
    page: str,
    group: Part | None = None,
) -> StepPage:
    """The page of that number of the steps whose label or name has the text searched for, of one part or of all."""
    wanted = search.replace("\0", "").strip()[:100].lower()
    among = frozenset(group.members) if group else {node.id for node in graph.nodes}
    found = [
        n
        for n in graph.nodes
        if n.id in among and (wanted in n.label.lower() or wanted in n.id.lower())
    ]
    number = min(max(int(page), 1), 10_000) if page.isdecimal() and len(page) < 9 else 1
    shown = found[(number - 1) * PAGE : number * PAGE]
    names = {node.id for node in shown}
    onward = gathered((one.source, one) for one in graph.edges if one.source in names)
    labels = {node.id: node.label for node in graph.nodes}
    plan = running_plan(definition)
    vertices = plan.vertices if plan else {}
    rows = [
        StepRow(
            node,
            [(edge, labels[edge.target]) for edge in onward[node.id][:MANY]],
            max(len(onward[node.id]) - MANY, 0),
            _policy(vertices[node.id].step.policy) if _runs(node, vertices) else [],
            standing.number(node.id),
            node.id in standing.unsure,
        )
        for node in shown
    ]
    return StepPage(rows, wanted, number, len(found), len(graph.nodes), group)


def _runs(node: Node, vertices: Container[str]) -> bool:
    """Whether it is a function that the policy is about."""
    return node.kind in ("step", "map") and node.id in vertices


def _policy(policy: Policy) -> list[str]:
    """How a step is run, in words."""
    said = [_retries(policy), _("at most %(seconds)g s") % {"seconds": policy.timeout}]
    if policy.heartbeat:
        said.append(_("reports every %(seconds)g s") % {"seconds": policy.heartbeat})
    if policy.queue:
        said.append(_("queue %(name)s") % {"name": policy.queue})
    if policy.concurrency:
        said.append(_("%(number)d at once") % {"number": policy.concurrency})
    if policy.transactional:
        said.append(_("in the commit"))
    if not policy.idempotent:
        said.append(_("not repeatable"))
    return said


def _retries(policy: Policy) -> str:
    if isinstance(policy.retries, int):
        number = policy.retries
        words = ngettext("%(number)d retry", "%(number)d retries", number)
        return words % {"number": number}
    each = (f"{kind.__name__} {number}" for kind, number in policy.retries.items())
    return _("retries: %(each)s") % {"each": ", ".join(each)}
