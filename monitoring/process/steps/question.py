"""Questions of workflows as people are asked them: the possible answers in words, and what each question is about."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Max

from monitoring.base.graphs import choices_of, labels_of, vertex_of
from monitoring.base.masking import names_of
from monitoring.process.steps.elements import beginning_of
from orchestrator.definition.secrets import MASK, mask_fields, mask_json
from orchestrator.definition.workflow.plan import Binding
from orchestrator.definition.workflow.steps import Question
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus
from orchestrator.text import shortened, steers

LONGEST = 200
"""The characters of one value that are shown beside a question."""

StepResults = dict[tuple[UUID, str], str]
"""The newest results, as text, by process and step."""

DeclaredQuestion = tuple[Question | None, Sequence[Binding]]
"""A question of the running code, with the sources of what it is about."""


@dataclass(frozen=True)
class PossibleAnswer:
    """An answer to a question: its value, the words for it, and what it leads to."""

    value: str
    label: str
    help: str


@dataclass(frozen=True)
class AskedQuestion:
    """A question as people are asked it.

    Args:
        answers: the possible answers.
        needs_reason: whether an answer needs a reason.
        about: the values that it is about, by name, without secrets.
    """

    answers: tuple[PossibleAnswer, ...]
    needs_reason: bool
    about: tuple[tuple[str, str], ...]


def asked_questions(runs: Sequence[StepRun]) -> dict[int, AskedQuestion]:
    """Return the questions among some visits, by the visits' keys; the visits need `instance` with its data."""
    asking = [run for run in runs if run.kind == StepKind.ASK]
    declared = {run.pk: _declared(run) for run in asking}
    results = _results(asking, declared)
    return {run.pk: _question(run, *declared[run.pk], results) for run in asking}


def _declared(run: StepRun) -> DeclaredQuestion:
    """The question that the running code declares, and the sources of what it is about."""
    vertex = vertex_of(run.instance.definition, run.node)
    if vertex is None or vertex.step.question is None:
        return None, ()
    return vertex.step.question, vertex.bindings


def _question(
    run: StepRun, known: Question | None, about: Sequence[Binding], results: StepResults
) -> AskedQuestion:
    words = known.labels if known is not None else {}
    more = known.help if known is not None else {}
    answers = tuple(
        PossibleAnswer(one, str(words.get(one, one)), str(more.get(one, "")))
        for one in choices_of(run.instance.definition, run.node)
    )
    labels = labels_of(run.instance.definition)
    values = tuple(
        (labels.get(one.name, one.name), text)
        for one in about
        if (text := _value(run.instance, one, results))
    )
    return AskedQuestion(answers, known is None or known.needs_reason, values)


def _value(process: ProcessInstance, source: Binding, results: StepResults) -> str:
    hidden = names_of(process.definition)
    if source.parameter in hidden or source.name in hidden:
        return MASK
    if source.source == "result":
        return results.get((process.pk, source.name), "")
    data: Any = process.data if isinstance(process.data, dict) else {}
    return _text(mask_fields(data.get(source.name), hidden))


def _text(value: Any) -> str:
    """Return a value in one line, so that it cannot look like several."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    plain = "".join(" " if steers(one) else one for one in text[: 2 * LONGEST])
    return "" if value is None else shortened(" ".join(plain.split()), LONGEST)


def _results(
    runs: Sequence[StepRun],
    declared: Mapping[int, DeclaredQuestion],
) -> StepResults:
    """Return the newest results that some questions are about, by one statement."""
    wanted = defaultdict[UUID, set[str]](set)
    for run in runs:
        wanted[run.instance_id] |= {
            one.name for one in declared[run.pk][1] if one.source == "result"
        }
    names = set[str]().union(*wanted.values())
    if not names:
        return {}
    hidden = {run.instance_id: names_of(run.instance.definition) for run in runs}
    rows = StepRun.objects.filter(instance__in=wanted, item=None, node__in=names)
    rows = rows.filter(status__in=[StepStatus.DONE, StepStatus.SKIPPED])
    newest = rows.exclude(result=None).order_by().values("instance", "node")
    keys = newest.annotate(last=Max("pk")).values_list("last", flat=True)
    told = StepRun.objects.filter(pk__in=list(keys)).annotate(
        told=beginning_of("result")
    )
    return {
        (process, node): _result_text(text or "", hidden[process])
        for process, node, text in told.values_list("instance_id", "node", "told")
    }


def _result_text(stored: str, hidden: frozenset[str]) -> str:
    """Return a stored result, of a very long one the beginning."""
    try:
        return _text(mask_fields(json.loads(stored), hidden))
    except ValueError:  # only the beginning was read
        return _text(mask_json(stored, hidden))
