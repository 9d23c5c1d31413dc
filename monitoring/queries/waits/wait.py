"""One wait in words: for what, what passes when, and what each would lead to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Right

from monitoring.queries.graphs import (
    choices_of,
    graph_of,
    labels_of,
    nodes_of,
    vertex_of,
)
from monitoring.queries.instance.diagram import accepted_now
from monitoring.queries.instance.trouble import last_line
from monitoring.queries.timeouts import (
    Timeout,
    leads_of,
    passed_of,
    timeouts_of,
)
from monitoring.queries.waits.kinds import KINDS, WaitKind, kind_of
from orchestrator.definition.graph import Node
from orchestrator.models import ProcessInstance, StepKind, StepRun
from orchestrator.text import unpacked

SHOWN = 2_000
"""Characters of an error that are read: its last line says what happened."""


@dataclass(frozen=True)
class Awaited:
    """What would move a visit on.

    Args:
        name: of an event, or of a step.
        guard: which of those events.
        leads: the step that it leads to, as people read it; "" where that is this one, or is not known.
    """

    name: str
    guard: str = ""
    leads: str = ""


@dataclass(frozen=True)
class Wait:
    """A visit that waits.

    Args:
        run: the visit.
        name: of the kind of what it waits for.
        label: its step, as people read it.
        awaited: what would move it on.
        timeouts: what happens by itself, the next one first.
        choices: what can be decided.
        attempts: how often it is tried in all; 0 where the running code does not say.
        passed_at: when its last deadline passed that was carried out.
    """

    run: StepRun
    name: str
    label: str
    awaited: Sequence[Awaited] = ()
    timeouts: Sequence[Timeout] = ()
    choices: Sequence[str] = ()
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
        """Whether it does not wait any more."""
        return self.run.finished_at is not None

    @property
    def error(self) -> str:
        """What went wrong when it was tried last."""
        return last_line(unpacked(_tail(self.run), self.run.text))

    @property
    def has_deadline(self) -> bool:
        """Whether its time is a deadline."""
        return self._wakes and self.name in ("event", "decision")

    @property
    def is_passing(self) -> bool:
        """Whether its deadline is being carried out, or could not be: then its time is no deadline."""
        return self.has_deadline and bool(self.run.owner or _tail(self.run))

    @property
    def progress(self) -> Mapping[str, Any]:
        return self.run.progress if isinstance(self.run.progress, dict) else {}

    @property
    def _wakes(self) -> bool:
        return self.run.wake_at is not None or self.run.remaining is not None


def read(rows: QuerySet[StepRun]) -> QuerySet[StepRun]:
    """The same with what a wait is told from; what may be large is left where it is."""
    found = rows.select_related("instance__definition", "instance__owner", "child")
    found = found.defer(
        "instance__definition__graph", "child__data", "result", "saved", "element"
    )
    return found.defer("error").annotate(tail=Right("error", SHOWN))


def waits_of(runs: Sequence[StepRun]) -> list[Wait]:
    """Visits that were read so, in words."""
    passed = passed_of(runs)
    return [_wait(run, passed.get(run.pk)) for run in runs]


def _wait(run: StepRun, passed_at: datetime | None) -> Wait:
    instance, name = run.instance, kind_of(run)
    definition = instance.definition
    labels, node = labels_of(definition), nodes_of(definition).get(run.node)
    vertex = vertex_of(definition, run.node) if name == "retry" else None
    return Wait(
        run,
        name,
        labels.get(run.node, run.node),
        _awaited(run, name, node, labels),
        list(timeouts_of(run, instance, labels, _tail(run)))
        if name in ("event", "decision")
        else (),
        choices_of(definition, run.node, node) if name == "decision" else (),
        vertex.step.policy.attempts() if vertex else 0,
        passed_at,
    )


def _awaited(
    run: StepRun,
    name: str,
    node: Node | None,
    labels: Mapping[str, str],
) -> list[Awaited]:
    if name == "step" and run.blocked_on:
        return [Awaited(labels.get(run.blocked_on, run.blocked_on))]
    if name != "event":
        return []
    if run.kind == StepKind.WAIT:
        detail = node.detail if node is not None else ""
        said = detail.removeprefix("for ").partition(", at most ")[0]
        event, _space, guard = said.partition(" ")
        return [Awaited(event, guard.strip("[]"))] if event else []
    return [
        Awaited(edge.event, edge.guard, leads_of(edge, labels))
        for edge in accepted_now(graph_of(run.instance.definition), run.instance)
        if edge.source == run.node
    ]


def _tail(run: StepRun) -> str:
    """The end of what went wrong with a visit that was read for this page."""
    return str(getattr(run, "tail", ""))
