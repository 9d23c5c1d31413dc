"""One wait in words: the awaited events or steps, the deadlines, and the steps to which they lead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Right

from monitoring.base.graphs import (
    labels_of,
    most_attempts,
    nodes_of,
    stored_graph,
)
from monitoring.lists.waits.kinds import KINDS, WaitKind, wait_kind
from monitoring.process.diagram import accepted_events
from monitoring.process.steps.question import AskedQuestion, asked_questions
from monitoring.process.steps.timeouts import (
    Timeout,
    passed_deadlines,
    target_label,
    timeouts_of,
)
from monitoring.process.steps.trouble import last_line
from orchestrator.definition.graph import Node
from orchestrator.models import ProcessInstance, StepKind, StepRun
from orchestrator.text import unpack_text

SHOWN = 2_000
"""Characters of an error to read: its last line has the message."""


@dataclass(frozen=True)
class WaitTarget:
    """An event or a step that a visit waits for.

    Args:
        name: of an event, or of a step.
        guard: the condition on the event.
        leads: the label of the step that it leads to; "" for the same step, or an unknown one.
    """

    name: str
    guard: str = ""
    leads: str = ""


@dataclass(frozen=True)
class Wait:
    """A visit that waits.

    Args:
        run: the visit.
        name: of the kind of wait.
        label: of the step.
        awaited: the events or steps that it waits for.
        timeouts: the future deadlines, the next one first.
        question: of a decision.
        attempts: the maximum number of attempts; 0 if the running code does not declare it.
        passed_at: the time of the last deadline that was carried out.
    """

    run: StepRun
    name: str
    label: str
    awaited: Sequence[WaitTarget] = ()
    timeouts: Sequence[Timeout] = ()
    question: AskedQuestion | None = None
    attempts: int = 0
    passed_at: datetime | None = None

    @property
    def instance(self) -> ProcessInstance:
        return self.run.instance

    @property
    def kind(self) -> WaitKind:
        return KINDS[self.name]

    @property
    def is_over(self) -> bool:
        """Whether it no longer waits."""
        return self.run.finished_at is not None

    @property
    def error(self) -> str:
        """The error of the last attempt."""
        return last_line(unpack_text(_tail(self.run), self.run.text))

    @property
    def has_deadline(self) -> bool:
        """Whether its time of waking is a deadline."""
        return self._wakes and self.name in ("event", "decision")

    @property
    def is_passing(self) -> bool:
        """Whether its deadline is being carried out or has failed; its time is then the time of the next attempt."""
        return self.has_deadline and bool(self.run.owner or _tail(self.run))

    @property
    def progress(self) -> Mapping[str, Any]:
        return self.run.progress if isinstance(self.run.progress, dict) else {}

    @property
    def _wakes(self) -> bool:
        return self.run.wake_at is not None or self.run.remaining is not None


def select_waits(rows: QuerySet[StepRun]) -> QuerySet[StepRun]:
    """Select visits with the related rows of a wait, without large columns."""
    found = rows.select_related("instance__definition", "instance__owner", "child")
    found = found.defer(
        "instance__definition__graph", "child__data", "result", "saved", "element"
    )
    return found.defer("error").annotate(tail=Right("error", SHOWN))


def describe_waits(runs: Sequence[StepRun]) -> list[Wait]:
    """Return the waits of visits that `select_waits` selected."""
    passed = passed_deadlines(runs)
    questions = asked_questions(runs)
    return [_wait(run, passed.get(run.pk), questions.get(run.pk)) for run in runs]


def _wait(
    run: StepRun, passed_at: datetime | None, question: AskedQuestion | None
) -> Wait:
    instance, name = run.instance, wait_kind(run)
    definition = instance.definition
    labels, node = labels_of(definition), nodes_of(definition).get(run.node)
    return Wait(
        run,
        name,
        labels.get(run.node, run.node),
        _wait_targets(run, name, node, labels),
        list(timeouts_of(run, instance, labels, _tail(run)))
        if name in ("event", "decision")
        else (),
        question if name == "decision" else None,
        most_attempts(definition)(run.node) if name == "retry" else 0,
        passed_at,
    )


REST = re.compile(r", (?:else (?:parked|ignored|rejected)|ignored when late|at most )")
"""The beginning of what the label of a wait says beside its event and its guards."""


def _wait_targets(
    run: StepRun, name: str, node: Node | None, labels: Mapping[str, str]
) -> list[WaitTarget]:
    if name == "step" and run.blocked_on:
        return [WaitTarget(labels.get(run.blocked_on, run.blocked_on))]
    if name != "event":
        return []
    if run.kind == StepKind.WAIT:
        detail = node.detail if node is not None else ""
        said = REST.split(detail.removeprefix("for "), maxsplit=1)[0]
        event, _space, guard = said.partition(" ")
        return [WaitTarget(event, guard.strip("[]"))] if event else []
    return [
        WaitTarget(edge.event, edge.guard, target_label(edge, labels))
        for edge in accepted_events(stored_graph(run.instance.definition), run.instance)
        if edge.source == run.node
    ]


def _tail(run: StepRun) -> str:
    """Return the end of the error of a visit that `select_waits` selected."""
    return str(getattr(run, "tail", ""))
