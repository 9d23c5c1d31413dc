"""The panel of one step of a process: its newest visits with their attempts, what it gets, and how long is usual."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.diagrams.words import detail_of
from monitoring.masking import masked_text, names_of
from monitoring.queries.definition.window import Window, window
from monitoring.queries.doing import window_word
from monitoring.queries.graphs import nodes_of, vertex_of
from monitoring.queries.instance.diagram import current_status
from monitoring.queries.instance.elements import SHOWN
from monitoring.queries.instance.stretches import turns_of
from monitoring.queries.instance.visits import RunRow, beginning_of, newest_rows
from monitoring.statuses import Look
from orchestrator.definition.typing import MISSING
from orchestrator.definition.workflow.plan import Binding
from orchestrator.definition.workflow.steps import Policy
from orchestrator.models import Incident, ProcessInstance, StepRun, StepStatus
from orchestrator.text import unpacked

VISITS = 3
"""Visits that the panel tells of, the newest first."""

INPUTS = 20
"""Parameters that it tells of."""

TOLD = 20
"""Failures of a visit that it tells of, the newest."""

OVER = "week"
"""The window of the map by which it is told what is usual."""


WAYS = {
    "again": Look("retry", "retrying", gettext_lazy("failed, and is tried again")),
    "stopped": Look("failed", "failed", gettext_lazy("failed for good")),
    "on": Look("running", "running", gettext_lazy("went on")),
}
"""How a visit goes on, by `VisitTurn.way`."""


@dataclass(frozen=True)
class AttemptMoment:
    """A moment at which a visit failed, or went on.

    Args:
        at: when.
        way: "again" where it was tried again, "stopped" where it failed for good, "on" where people let it go on.
        message: what went wrong; "" where no row tells.
    """

    at: datetime
    way: str
    message: str = ""

    @property
    def look(self) -> Look:
        """How it is shown."""
        return WAYS[self.way]


@dataclass(frozen=True)
class PanelVisit:
    """One visit.

    Args:
        row: as the table has it.
        status: as shown.
        attempts: when it failed and went on, as far as rows tell it.
        slow: how much longer it takes, or took, than 95 of 100 visits: as a number of times; 0 where it does not.
    """

    row: RunRow
    status: str
    attempts: Sequence[AttemptMoment]
    slow: float

    @property
    def run(self) -> StepRun:
        return self.row.run

    @property
    def work(self) -> str:
        """By which name a worker has it in hand."""
        return f"steprun:{self.run.pk}"


@dataclass(frozen=True)
class StepInput:
    """A parameter.

    Args:
        parameter: its name.
        source: where its value comes from, in words.
        text: the value as JSON, cut where it is long; "" where it is not shown.
        step: the step whose result it is.
    """

    parameter: str
    source: str
    text: str = ""
    step: str = ""

    @property
    def cut(self) -> bool:
        return len(self.text) > SHOWN

    @property
    def shown(self) -> str:
        return self.text[:SHOWN]


@dataclass(frozen=True)
class Usual:
    """How long visits of the step took lately.

    Args:
        number: of how many visits that is told, as a text.
        median: half of them took no longer.
        p95: 95 of 100 took no longer.
        over: the window, in words.
    """

    number: str
    median: timedelta
    p95: timedelta
    over: str


@dataclass(frozen=True)
class StepPanel:
    """The read model of the panel.

    Args:
        step: its name.
        label: as people read it.
        detail: what it waits for or repeats over.
        policy: how the running code tries it; None where that is not known.
        visits: the newest ones.
        inputs: what its function gets.
        more_inputs: how many parameters are not told of.
        usual: how long it takes; None where nobody was in it.
    """

    step: str
    label: str
    detail: str
    policy: Policy | None
    visits: list[PanelVisit]
    inputs: list[StepInput]
    more_inputs: int
    usual: Usual | None

    @property
    def tries(self) -> int:
        """How often it is tried in all; 0 where that is not known."""
        return self.policy.attempts() if self.policy is not None else 0


def step_panel(
    instance: ProcessInstance,
    labels: Mapping[str, str],
    step: str,
) -> StepPanel | None:
    """The panel of a step; None for what is none of this process.

    Args:
        instance: the process.
        labels: its steps as people read them.
        step: the step's name; "" where none is chosen.
    """
    node = nodes_of(instance.definition).get(step)
    if node is None:
        return None
    vertex = vertex_of(instance.definition, step)
    rows = newest_rows(instance, labels, step, VISITS)
    usual = _usual(window(instance.definition, OVER, step), step)
    bindings = vertex.bindings if vertex is not None else ()
    return StepPanel(
        step,
        node.label,
        detail_of(node),
        vertex.step.policy if vertex is not None and vertex.step.function else None,
        _visits(instance, rows, usual),
        list(_inputs(instance, labels, bindings[:INPUTS])),
        max(len(bindings) - INPUTS, 0),
        usual,
    )


def _usual(over: Window, step: str) -> Usual | None:
    passed = over.of((step,))
    median, p95 = passed.quantile(0.5), passed.quantile(0.95)
    if median is None or p95 is None:
        return None
    return Usual(
        over.said(len(passed.seconds)),
        timedelta(seconds=median),
        timedelta(seconds=p95),
        window_word(over.name),
    )


def _visits(
    instance: ProcessInstance, rows: Sequence[RunRow], usual: Usual | None
) -> list[PanelVisit]:
    runs = [row.run for row in rows]
    turns, said = turns_of(instance, runs), _messages(runs)
    found = []
    for row in rows:
        of_manager = not row.run.kind and row.open
        status = current_status(instance, row.status) if of_manager else row.status
        told = [
            AttemptMoment(turn.at, turn.way, said[row.run.pk].get(turn.at, ""))
            for turn in turns.get(row.run.pk, [])[-TOLD:]
        ]
        slow = row.duration / usual.p95 if usual and usual.p95 else 0.0
        found.append(PanelVisit(row, status, told, slow if slow > 1 else 0.0))
    return found


def _messages(runs: Sequence[StepRun]) -> dict[int, dict[datetime, str]]:
    """What was said of the failures of visits, by the moments at which people were told."""
    found: dict[int, dict[datetime, str]] = defaultdict(dict)
    rows = Incident.objects.filter(step_run__in=[run.pk for run in runs])
    columns = "step_run", "opened_at", "message", "text"
    newest = rows.order_by("-pk").values_list(*columns)[: TOLD * VISITS]
    for run, at, message, text in newest:
        if run is not None:
            found[run][at] = unpacked(message, text)
    return found


def _inputs(
    instance: ProcessInstance, labels: Mapping[str, str], bindings: Sequence[Binding]
) -> Iterator[StepInput]:
    """What the function gets, as results and the input stand now."""
    names = {one.name for one in bindings if one.source == "result"}
    results = _results(instance, names)
    for one in bindings:
        if one.source == "result":
            label = labels.get(one.name, one.name)
            said = _("the result of %(step)s") % {"step": label}
            yield StepInput(one.parameter, said, results.get(one.name, ""), one.name)
        elif one.source == "input":
            said = _("the input's field %(field)s") % {"field": one.name}
            yield StepInput(one.parameter, said)
        else:
            yield StepInput(one.parameter, _source(one))


def _source(binding: Binding) -> str:
    words = {
        "whole_input": _("the whole input"),
        "context": _("its circumstances: attempt, deadline, progress"),
        "error": _("the failure that it catches"),
        "item": _("one element"),
    }
    if binding.source == "constant" and binding.default is not MISSING:
        return _("always %(value)s") % {"value": f"{binding.default!r:.200}"}
    return words.get(binding.source, binding.source)


def _results(instance: ProcessInstance, names: set[str]) -> dict[str, str]:
    """The results of steps as text, cut; those of the last visit of each."""
    if not names:
        return {}
    rows = StepRun.objects.filter(instance=instance, item=None, node__in=names)
    rows = rows.filter(status__in=[StepStatus.DONE, StepStatus.SKIPPED])
    rows = rows.exclude(result=None).order_by("node", "-pk")
    text = beginning_of("result")
    hidden = names_of(instance.definition)
    found: dict[str, str] = {}
    for node, said in rows.annotate(told=text).values_list("node", "told")[:200]:
        found.setdefault(node, masked_text(said or "", hidden))
    return found
