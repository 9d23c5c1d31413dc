"""The panel of one step of a process: its newest visits with attempts, its inputs, its usual duration."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.base.graphs import nodes_of, vertex_of
from monitoring.base.masking import names_of
from monitoring.base.statuses import Look
from monitoring.diagrams.words import detail_of
from monitoring.process.revision.moment import ProcessMoment
from monitoring.process.steps.elements import SHOWN, beginning_of
from monitoring.process.steps.step_states import StepState
from monitoring.process.steps.visit_parts import turns_of
from monitoring.process.steps.visits import RunRow, newest_rows
from monitoring.queries.activity import window_word
from monitoring.queries.window import Window, read_window
from orchestrator.definition.annotations import MISSING
from orchestrator.definition.secrets import mask_json
from orchestrator.definition.workflow.plan import Binding
from orchestrator.definition.workflow.steps import Policy
from orchestrator.models import Incident, ProcessInstance, StepRun, StepStatus
from orchestrator.text import unpack_text

VISITS = 3
"""The maximum number of visits that the panel shows, the newest first."""

INPUTS = 20
"""The maximum number of parameters that it shows."""

TOLD = 20
"""The maximum number of failures of a visit that it shows, the newest."""

OVER = "week"
"""The window for the usual duration."""


WAYS = {
    "again": Look("retry", "retrying", gettext_lazy("failed, and is tried again")),
    "stopped": Look("failed", "failed", gettext_lazy("failed for good")),
    "on": Look("running", "running", gettext_lazy("went on")),
}
"""The look of a turn, by `VisitTurn.way`."""


@dataclass(frozen=True)
class AttemptMoment:
    """A time at which a visit failed or continued.

    Args:
        at: when.
        way: "again" (retried), "stopped" (failed for good) or "on" (people continued it).
        message: the error; "" if no row has it.
    """

    at: datetime
    way: str
    message: str = ""

    @property
    def look(self) -> Look:
        """The look of its icon."""
        return WAYS[self.way]


@dataclass(frozen=True)
class PanelVisit:
    """One visit.

    Args:
        row: the row of the table.
        attempts: its failures and continuations, as far as rows have them.
        slow: its duration divided by that of 95 of 100 visits; 0 if it is not longer.
    """

    row: RunRow
    attempts: Sequence[AttemptMoment]
    slow: float

    @property
    def run(self) -> StepRun:
        return self.row.run

    @property
    def work(self) -> str:
        """The name of its work for workers."""
        return f"steprun:{self.run.pk}"


@dataclass(frozen=True)
class StepInput:
    """A parameter.

    Args:
        parameter: its name.
        source: the origin of its value, in words.
        text: the value as JSON, cut if it is long; "" if it is not shown.
        step: the step that has it as its result.
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
class UsualDuration:
    """The durations of recent visits of the step.

    Args:
        number: the number of visits, as a text.
        median: the longest duration of half of them.
        p95: the longest duration of 95 of 100.
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
        label: its label.
        detail: what it waits for, or repeats over.
        policy: the retry policy in the running code; None if unknown.
        visits: the newest visits.
        inputs: the parameters of its function.
        more_inputs: the number of other parameters.
        usual: its usual duration; None without recent visits.
        whole: whether all recent visits of the process's definition were looked at.
    """

    label: str
    detail: str
    policy: Policy | None
    visits: list[PanelVisit]
    inputs: list[StepInput]
    more_inputs: int
    usual: UsualDuration | None
    whole: bool

    @property
    def tries(self) -> int:
        """The number of attempts in all; 0 if unknown."""
        return self.policy.attempts() if self.policy is not None else 0


def step_panel(
    moment: ProcessMoment, states: Mapping[str, StepState], step: str
) -> StepPanel | None:
    """Read the panel of a step now; None for an unknown step.

    Args:
        moment: now.
        states: the states of its steps.
        step: the name of the step; "" if none is chosen.
    """
    node = nodes_of(moment.definition).get(step)
    if node is None:
        return None
    vertex = vertex_of(moment.definition, step)
    over = read_window(moment.definition, OVER)
    usual = _usual_duration(over, step)
    bindings = vertex.bindings if vertex is not None else ()
    return StepPanel(
        node.label,
        detail_of(node),
        vertex.step.policy if vertex is not None and vertex.step.function else None,
        _visits(moment.present, newest_rows(moment, states, step, VISITS), usual),
        list(_inputs(moment.present, moment.labels, bindings[:INPUTS])),
        max(len(bindings) - INPUTS, 0),
        usual,
        over.read.whole and not over.at_least,
    )


def _usual_duration(over: Window, step: str) -> UsualDuration | None:
    passed = over.of((step,))
    if not over.shows(passed):
        return None
    median, p95 = passed.quantile(0.5), passed.quantile(0.95)
    if median is None or p95 is None:
        return None
    return UsualDuration(
        str(over.visits(passed)),
        timedelta(seconds=median),
        timedelta(seconds=p95),
        window_word(over.name),
    )


def _visits(
    instance: ProcessInstance, rows: Sequence[RunRow], usual: UsualDuration | None
) -> list[PanelVisit]:
    runs = [row.run for row in rows]
    turns, said = turns_of(instance, runs), _messages(runs)
    found = []
    for row in rows:
        told = [
            AttemptMoment(turn.at, turn.way, said[row.run.pk].get(turn.at, ""))
            for turn in turns.get(row.run.pk, [])[-TOLD:]
        ]
        slow = row.duration / usual.p95 if usual and usual.p95 else 0.0
        found.append(PanelVisit(row, told, slow if slow > 1 else 0.0))
    return found


def _messages(runs: Sequence[StepRun]) -> dict[int, dict[datetime, str]]:
    """Return the messages of incidents of visits, by the times at which they opened."""
    found: dict[int, dict[datetime, str]] = defaultdict(dict)
    rows = Incident.objects.filter(step_run__in=[run.pk for run in runs])
    columns = "step_run", "opened_at", "message", "text"
    newest = rows.order_by("-pk").values_list(*columns)[: TOLD * VISITS]
    for run, at, message, text in newest:
        if run is not None:
            found[run][at] = unpack_text(message, text)
    return found


def _inputs(
    instance: ProcessInstance, labels: Mapping[str, str], bindings: Sequence[Binding]
) -> Iterator[StepInput]:
    """Yield the parameters of the function, with the current results."""
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
    """Return the results of the last visits of steps, as text, cut."""
    if not names:
        return {}
    rows = StepRun.objects.filter(instance=instance, item=None, node__in=names)
    rows = rows.filter(status__in=[StepStatus.DONE, StepStatus.SKIPPED])
    rows = rows.exclude(result=None).order_by("node", "-pk")
    text = beginning_of("result")
    hidden = names_of(instance.definition)
    found: dict[str, str] = {}
    for node, said in rows.annotate(told=text).values_list("node", "told")[:200]:
        found.setdefault(node, mask_json(said or "", hidden))
    return found
