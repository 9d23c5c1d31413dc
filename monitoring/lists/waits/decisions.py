"""The list of decisions: the open steps in which a workflow asks a person, oldest first."""

from __future__ import annotations

from django.db.models import QuerySet

from monitoring.base.graphs import labels_of
from monitoring.lists.waits.wait import Wait
from monitoring.process.steps.question import AskedQuestion, asked_questions
from monitoring.queries.counts import CAP
from monitoring.queries.lists import KeyedPage, page_by_key
from orchestrator.models import StepKind, StepRun, StepStatus

PAGE = 50


def open_questions(definition: str = "") -> QuerySet[StepRun]:
    """Return the open questions of live workflows; those of one definition come from the oldest `CAP`."""
    rows = StepRun.objects.filter(kind=StepKind.ASK, finished_at=None)
    rows = rows.filter(status=StepStatus.WAITING)
    if not definition:
        return rows
    oldest = rows.order_by("pk").values("pk")[:CAP]
    return rows.filter(pk__in=oldest, instance__name=definition)


def decision_page(after: str = "", definition: str = "") -> KeyedPage[Wait]:
    """Return a page of the questions, the longest waiting first."""
    rows = (
        open_questions(definition).select_related("instance__definition").order_by("pk")
    )
    rows = rows.defer("instance__definition__graph")
    page = page_by_key(rows, PAGE, after, ascending=True)
    questions = asked_questions(page.rows)
    return page.of([_wait_for(run, questions[run.pk]) for run in page.rows])


def _wait_for(run: StepRun, question: AskedQuestion) -> Wait:
    label = labels_of(run.instance.definition).get(run.node, run.node)
    return Wait(run, "decision", label, question=question)
