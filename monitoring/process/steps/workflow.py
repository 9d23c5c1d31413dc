"""The open steps and sub-processes of a workflow at a moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, IntegerField, QuerySet, Value, When
from django.db.models.functions import Left

from monitoring.base.graphs import most_attempts, nodes_of
from monitoring.base.translation import progress_message
from monitoring.diagrams.words import detail_of
from monitoring.process.revision.moment import ProcessMoment
from monitoring.process.steps.question import AskedQuestion, asked_questions
from monitoring.process.steps.step_states import MOST, StepState, visit_status
from monitoring.process.steps.trouble import last_line
from monitoring.process.steps.visits import notable_visits
from orchestrator.models import ProcessInstance, StepKind, StepRun, StepStatus
from orchestrator.text import unpack_text

SHOWN_NOW = 12
"""The maximum number of open steps that the page shows."""

CHILDREN = 20
"""The maximum number of sub-processes that a page lists."""


@dataclass(frozen=True)
class OpenStep:
    """An open step with its visit, its progress and its error.

    At a past moment only its beginning and its sub-process are known.
    """

    run: StepRun
    status: str
    label: str
    detail: str = ""
    attempts: int = 0
    error: str = ""
    question: AskedQuestion | None = None

    @property
    def progress(self) -> Mapping[str, Any]:
        return self.run.progress if isinstance(self.run.progress, dict) else {}

    @property
    def message(self) -> str:
        """The message in its progress."""
        return progress_message(self.progress)

    @property
    def is_map(self) -> bool:
        return self.run.kind == StepKind.MAP

    @property
    def has_deadline(self) -> bool:
        return self._wakes and self.run.kind in (StepKind.WAIT, StepKind.ASK)

    @property
    def is_asleep(self) -> bool:
        """Whether it sleeps, or polls: it is called again later."""
        waiting = self.run.status == StepStatus.WAITING
        sleeps = waiting and self.run.kind == StepKind.SLEEP
        polls = self.run.status == StepStatus.READY and bool(self.run.polled)
        return self._wakes and (sleeps or polls)

    @property
    def is_tried_again(self) -> bool:
        return self._wakes and self.run.status == StepStatus.RETRYING

    @property
    def deadline_passed(self) -> bool:
        """Whether its deadline has passed, and is being carried out or has failed."""
        return bool(self.run.owner or self.error)

    @property
    def _wakes(self) -> bool:
        return self.run.wake_at is not None or self.run.remaining is not None


@dataclass(frozen=True)
class WorkflowView:
    """The open steps and sub-processes of a workflow at a moment.

    Args:
        open: the open steps; for now, steps that need a person come first.
        more_open: the number of other open steps.
        counts: the number of steps by status.
        children: the newest sub-processes, except those of the shown open steps.
    """

    open: Sequence[OpenStep]
    more_open: int
    counts: list[tuple[str, int]]
    children: list[ProcessInstance]

    @property
    def number_open(self) -> int:
        """The number of all open steps."""
        return len(self.open) + self.more_open


def workflow_view(
    moment: ProcessMoment, states: Mapping[str, StepState], most: int = SHOWN_NOW
) -> WorkflowView:
    """Read the open steps and children of a workflow at a moment.

    Args:
        moment: the moment.
        states: the states of its steps.
        most: the number of open steps that it reads.
    """
    open_at = _open_then if moment.is_past else _open_now
    going_on, more = open_at(moment, states, most)
    return WorkflowView(
        going_on,
        more,
        _counts(states),
        children_of(moment.present, [step.run.child for step in going_on], moment.at),
    )


def _open_then(
    moment: ProcessMoment, states: Mapping[str, StepState], most: int
) -> tuple[list[OpenStep], int]:
    """Return the open steps at a past moment, each with its visit, and the number beyond `most`."""
    names = [name for name, step in states.items() if step.open]
    runs = _runs_then(moment) if names else {}
    found = [
        OpenStep(runs[name], states[name].status, moment.labels.get(name, name))
        for name in names
        if name in runs
    ]
    return found[:most], max(len(found) - most, 0)


def _runs_then(moment: ProcessMoment) -> dict[str, StepRun]:
    """Return the open visits at a past moment, by the names of that moment, without later facts."""
    rows = moment.present.step_runs.filter(item=None, entered__lte=moment.revision)
    rows = rows.exclude(left__lte=moment.revision).order_by("pk")
    # With the process: Django would otherwise query it for each row.
    named = "instance", "node", "item", "started_at", "child__name", "child__started_at"
    found = {}
    for run in rows.select_related("child").only(*named)[:MOST]:
        run.progress = None
        if run.child is not None and run.child.started_at > moment.until:
            run.child = None
        found[moment.name_then(run.node)] = run
    return found


def _open_now(
    moment: ProcessMoment, states: Mapping[str, StepState], most: int
) -> tuple[list[OpenStep], int]:
    """Return the open visits to show, and the number beyond `most`."""
    rows = _open_steps(moment.present)
    found = list(rows[: most + 1])
    more = rows.count() - most if len(found) > most else 0
    attempts = most_attempts(moment.definition)
    for run in found[:most]:
        run.instance = moment.present
    questions = asked_questions(found[:most])
    shown = [
        _open_step(run, states, attempts, moment, questions.get(run.pk))
        for run in found[:most]
    ]
    return shown, max(more, 0)


def _open_steps(instance: ProcessInstance) -> QuerySet[StepRun]:
    """Return the open visits to show; visits that need a person come first."""
    rows = notable_visits(StepRun.objects.filter(instance=instance))
    order = [
        When(status=StepStatus.FAILED, then=0),
        When(kind=StepKind.ASK, then=1),
        When(status=StepStatus.RETRYING, then=2),
        When(status=StepStatus.RUNNING, then=3),
    ]
    urgency = Case(*order, default=Value(4), output_field=IntegerField())
    rows = rows.defer("result", "saved", "element", "error")
    # The last line of a traceback has the message; a very long traceback is not read whole.
    tail = Left("error", 20_000)
    return (
        rows.annotate(error_text=tail).order_by(urgency, "pk").select_related("child")
    )


def _open_step(
    run: StepRun,
    states: Mapping[str, StepState],
    attempts: Callable[[str], int],
    moment: ProcessMoment,
    question: AskedQuestion | None,
) -> OpenStep:
    instance = moment.present
    node = nodes_of(instance.definition).get(run.node)
    label, detail = (node.label, detail_of(node)) if node else (run.node, "")
    if detail.casefold() in label.casefold():
        detail = ""
    error = last_line(unpack_text(run.error_text, run.text))  # type: ignore[attr-defined]  # annotated above
    status = visit_status(run, instance, states)
    return OpenStep(run, status, label, detail, attempts(run.node), error, question)


def children_of(
    instance: ProcessInstance,
    shown: Iterable[ProcessInstance | None],
    until: datetime | None = None,
) -> list[ProcessInstance]:
    """Return the newest sub-processes, except those that the page shows elsewhere.

    Args:
        instance: their parent.
        shown: the sub-processes to leave out.
        until: leave out later ones; None for no bound.
    """
    rows = ProcessInstance.objects.filter(parent=instance.pk)
    rows = rows.exclude(pk__in=[one.pk for one in shown if one])
    if until is not None:
        rows = rows.filter(started_at__lte=until)
    rows = rows.only("id", "name", "status", "correlation_key")
    return list(rows.newest_first()[:CHILDREN])


def _counts(states: Mapping[str, StepState]) -> list[tuple[str, int]]:
    """Return the number of steps by status, in the order of urgency."""
    shown: Sequence[str] = (
        "failed", "retrying", "running", "ready", "waiting", "done", "skipped", "handled",
        "undone", "not_taken", "cancelled",
    )  # fmt: skip
    numbers = Counter(state.status for state in states.values())
    return [(name, numbers[name]) for name in shown if numbers[name]]
