"""The inbox of those who decide: open steps in which a workflow asks for a decision, oldest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from monitoring.queries.counts import CAP
from monitoring.queries.graphs import choices_of, graph_of
from monitoring.queries.lists import KeyedPage, page_by_key
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus

PAGE = 50


@dataclass(frozen=True)
class Question:
    """A decision that is wanted."""

    run: StepRun
    instance: ProcessInstance
    label: str
    choices: tuple[str, ...]
    deadline: datetime | None


def asked(definition: str = "") -> QuerySet[StepRun]:
    """The open questions of live workflows; those of one definition are looked for among the oldest."""
    rows = StepRun.objects.filter(kind=StepKind.ASK, finished_at=None)
    rows = rows.filter(status=StepStatus.WAITING)
    if not definition:
        return rows
    oldest = rows.order_by("pk").values("pk")[:CAP]
    return rows.filter(pk__in=oldest, instance__name=definition)


def decision_page(after: str = "", definition: str = "") -> KeyedPage[Question]:
    """A page of the questions, the longest waiting first."""
    rows = asked(definition).select_related("instance__definition").order_by("pk")
    rows = rows.defer("instance__definition__graph")
    page = page_by_key(rows, PAGE, after, ascending=True)
    return page.of(list(map(_question, page.rows)))


def _question(run: StepRun) -> Question:
    definition = run.instance.definition
    nodes = (n for n in graph_of(definition).nodes if n.id == run.node)
    node = next(nodes, None)
    choices = choices_of(definition, run.node, node)
    label = node.label if node else run.node
    return Question(run, run.instance, label, choices, run.wake_at)
