"""The table of a workflow's steps: what each does, what follows, and how it runs, from the graph and the code."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from django.core.paginator import Page, Paginator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.base.graphs import running_plan
from monitoring.definition.step_counts import StepCounts
from monitoring.diagrams import words
from monitoring.diagrams.sketch import Part
from monitoring.queries.counts import Capped
from monitoring.queries.lists import parse_number
from orchestrator.containers import group_by_key
from orchestrator.definition.graph import Edge, Graph, Node
from orchestrator.definition.workflow.steps import Policy
from orchestrator.models import Definition

PAGE = 100

MANY = 6
"""Ways to further steps that one row names."""


@dataclass(frozen=True)
class StepRow:
    """One step: the ways from it with the labels of their ends, its policy in words, the live processes in it."""

    node: Node
    onward: list[tuple[Edge, str]]
    more: int
    policy: list[str]
    live: Capped

    @property
    def needed(self) -> str:
        return words.join_text(self.node.join)


@dataclass(frozen=True)
class StepPage:
    """A page of the steps; `group` is the part of the map that limits them."""

    rows: list[StepRow]
    search: str
    page: Page[Node]
    group: Part | None = None


def step_page(
    definition: Definition,
    graph: Graph,
    standing: StepCounts,
    search: str,
    page: str,
    group: Part | None = None,
) -> StepPage:
    """Return a page of the steps whose label or name contains a text, of one part of the map or of all."""
    wanted = search.replace("\0", "").strip()[:100].lower()
    shown = Paginator(_found(graph, wanted, group), PAGE).get_page(
        parse_number(page, 9) or 1
    )
    names = {node.id for node in shown}
    onward = group_by_key((e.source, e) for e in graph.edges if e.source in names)
    labels = {node.id: node.label for node in graph.nodes}
    plan = running_plan(definition)
    vertices = plan.vertices if plan else {}
    rows = [
        StepRow(
            node,
            [(edge, labels[edge.target]) for edge in onward[node.id][:MANY]],
            max(len(onward[node.id]) - MANY, 0),
            _policy(vertices[node.id].step.policy) if _runs(node, vertices) else [],
            standing.capped(node.id),
        )
        for node in shown
    ]
    return StepPage(rows, wanted, shown, group)


def _found(graph: Graph, wanted: str, group: Part | None) -> list[Node]:
    """Return the steps of a part, or of all parts, whose label or name contains a text."""
    found = [n for n in graph.nodes if wanted in f"{n.label}\n{n.id}".lower()]
    among = frozenset(group.members) if group else None
    return [n for n in found if among is None or n.id in among]


def _runs(node: Node, vertices: Container[str]) -> bool:
    """Whether the step is a function with a policy."""
    return node.kind in ("step", "map") and node.id in vertices


def _policy(policy: Policy) -> list[str]:
    """Return the policy of a step in words."""
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
