"""The visits of an instance's steps as a table: searched and paged in the database, results and errors cut there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast, Left, Right
from django.utils import timezone

from monitoring.diagrams.sketch import Part
from monitoring.masking import masked, masked_text, names_of, sees_data
from monitoring.queries.graphs import graph_of
from monitoring.queries.instance.elements import (
    KEY,
    LARGE,
    SHOWN,
    ElementFilters,
    ElementPage,
    discreet,
    element_page,
    element_text,
    in_state,
)
from monitoring.queries.instance.step_states import StepState, visit_status
from monitoring.queries.instance.trouble import last_line
from monitoring.queries.lists import KeyedPage, Search, number_in, page_by_key
from orchestrator import secret_names
from orchestrator.models import (
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.text import unpacked

PAGE = 30
FOUND = 500
"""Steps that a search may find by their labels."""

MEMBERS = 30_000
"""Steps of a part of the diagram that the table can be narrowed to: more names one query does not hold."""

ELEMENTS = 1_000
"""Elements of a map whose results are told; of more, the file of its elements has them."""


@dataclass(frozen=True)
class RunFilters(Search):
    """What the table is narrowed to, and from which key on it is shown."""

    step: str = ""
    search: str = ""
    state: str = ""
    runs: str = ""
    group: str = ""
    visit: str = ""

    @property
    def any(self) -> bool:
        return bool(self.step or self.search or self.state)

    @property
    def of_elements(self) -> ElementFilters:
        """The same for the elements of a map."""
        visit = number_in(self.visit, 9) or 0
        blind = self.reader is not None and not sees_data(self.reader)
        return ElementFilters(self.step, self.search, self.state, visit, secret=blind)


@dataclass(frozen=True)
class RunRow:
    """One visit: when it was, as a share of the instance's time, and what came of it."""

    run: StepRun
    label: str
    status: str
    duration: timedelta
    begins: float
    lasts: float
    result: str
    error: str
    cut: bool = False
    """Whether there is more of the result."""

    @property
    def open(self) -> bool:
        return self.run.finished_at is None

    @property
    def said(self) -> str:
        """What went wrong, in a line."""
        return last_line(unpacked(self.error, self.run.text))

    @property
    def element(self) -> str:
        """What an element of a map is made of, as people read it."""
        return element_text(self.run) if self.run.item is not None else ""

    @property
    def shown_result(self) -> str:
        return self.result[:SHOWN]

    @property
    def has_result(self) -> bool:
        return self.result not in ("", "null") and not self.error

    @property
    def can_be_redone(self) -> bool:
        return self.run.status in (StepStatus.DONE, StepStatus.SKIPPED) and (
            self.run.kind not in (StepKind.UNDO, StepKind.ITEM)
        )

    @property
    def can_be_skipped(self) -> bool:
        of_one = self.run.kind not in (StepKind.JOIN, StepKind.MAP)
        return self.open and of_one and self.run.status != StepStatus.RUNNING


@dataclass(frozen=True, kw_only=True)
class RunPage(KeyedPage[RunRow]):
    """Visits newest first, or elements of a map in their order."""

    filters: RunFilters
    group: Part | None = None
    elements: ElementPage | None = None

    @property
    def narrowed(self) -> bool:
        return self.filters.any or self.group is not None

    @property
    def states(self) -> list[str]:
        """The statuses that the table can be narrowed to."""
        return list(StepStatus.values)

    @property
    def query(self) -> str:
        """The filters for the address of the next page, with an ampersand at the end."""
        there = {
            "group": self.group.id if self.group else "",
            "visit": self.filters.visit if self.elements else "",
        }
        given = self.filters.parameters(**there, runs="")
        return f"{urlencode(given)}&" if given else ""


def run_page(
    instance: ProcessInstance,
    labels: Mapping[str, str],
    states: Mapping[str, StepState],
    filters: RunFilters,
    group: Part | None = None,
    *,
    of_map: bool = False,
) -> RunPage:
    """One page of an instance's visits: of one part of its diagram, or of all; of a map its elements.

    Args:
        instance: the process.
        labels: the steps as people read them.
        states: those of its steps.
        filters: what the table is narrowed to.
        group: the part that stands for several steps to which it is narrowed too.
        of_map: whether the step that it is narrowed to is a map.
    """
    now, secrets = timezone.now(), secret_names.of_process(instance)
    hidden = secrets.names
    if of_map:
        elements = element_page(instance, filters.of_elements, filters.runs)
        if elements is not None:
            whole = [] if filters.search or filters.state else [elements.head]
            found = [*([] if filters.runs else whole), *elements.rows]
            shown = [_row(run, instance, labels, states, now, hidden) for run in found]
            return RunPage(shown, elements.older, filters=filters, elements=elements)
    rows = _matching(instance, labels, filters)
    if group is not None:
        rows = rows.filter(node__in=group.members[:MEMBERS])
    page = page_by_key(_shown(rows).order_by("-pk"), PAGE, filters.runs)
    shown = [
        _row(discreet(run, secrets), instance, labels, states, now, hidden)
        for run in page.rows
    ]
    return RunPage(shown, page.older, filters=filters, group=group)


def newest_rows(
    instance: ProcessInstance,
    labels: Mapping[str, str],
    step: str,
    most: int,
) -> list[RunRow]:
    """The newest visits of one step, as the table has them, without the elements of a map."""
    rows = StepRun.objects.filter(instance=instance, item=None, node=step)
    rows = rows.exclude(status=StepStatus.SUPERSEDED)
    now, hidden = timezone.now(), names_of(instance.definition)
    found = _shown(rows).order_by("-pk")[:most]
    return [_row(run, instance, labels, {}, now, hidden) for run in found]


def _shown(rows: QuerySet[StepRun]) -> QuerySet[StepRun]:
    """Visits with the beginnings of what may be large."""
    shown = rows.defer(*LARGE).annotate(
        result_text=beginning_of("result"),
        error_text=Right("error", SHOWN),
        element_text=Left(Cast("element", TextField()), KEY),
    )
    return shown.select_related("child")


def beginning_of(column: str) -> Left:
    """As much of a JSON column as a page shows, as text, and one character more."""
    return Left(Cast(column, TextField()), SHOWN + 1)


def worth_a_look(rows: QuerySet[StepRun]) -> QuerySet[StepRun]:
    """The open visits, but no join that waits for its branches, and of a map only the elements in trouble."""
    trouble = Q(status__in=[StepStatus.FAILED, StepStatus.RETRYING])
    rows = rows.filter(finished_at=None).exclude(kind=StepKind.JOIN)
    return rows.filter(Q(item=None) | trouble)


def _matching(
    instance: ProcessInstance, labels: Mapping[str, str], filters: RunFilters
) -> QuerySet[StepRun]:
    rows = StepRun.objects.filter(instance=instance)
    if filters.step:
        rows = rows.filter(node=filters.step)
    elif not filters.any:
        # Of ten thousand elements only the map; and what has begun, not what waits for its branches.
        rows = rows.filter(item=None).exclude(kind=StepKind.JOIN, finished_at=None)
    every_open = filters.state == "open" and not filters.step
    rows = worth_a_look(rows) if every_open else in_state(rows, filters.state)
    wanted = filters.search
    if wanted.removeprefix("#").isdecimal():
        return rows.filter(item=int(wanted.removeprefix("#")[:9]))
    if wanted:
        low = wanted.lower()
        names = [n for n, label in labels.items() if low in label.lower() or low in n]
        rows = rows.filter(Q(node__in=names[:FOUND]) | Q(error__icontains=wanted))
    return rows


def _row(
    run: StepRun,
    instance: ProcessInstance,
    labels: Mapping[str, str],
    states: Mapping[str, StepState],
    now: datetime,
    hidden: frozenset[str],
) -> RunRow:
    ended = run.finished_at or now
    whole = max(
        ((instance.finished_at or now) - instance.started_at).total_seconds(), 1e-3
    )
    begins = max((run.started_at - instance.started_at).total_seconds(), 0) / whole
    lasts = max((ended - run.started_at).total_seconds(), 0) / whole
    return RunRow(
        run,
        labels.get(run.node, run.node),
        visit_status(run, instance, states),
        ended - run.started_at,
        min(begins, 0.995) * 100,
        max(min(lasts, 1 - min(begins, 0.995)), 0.005) * 100,
        masked_text(getattr(run, "result_text", None) or "", hidden),
        getattr(run, "error_text", None) or "",
        cut=len(getattr(run, "result_text", None) or "") > SHOWN,
    )


def result_of(instance: ProcessInstance) -> Any:
    """The result of a workflow that has completed, without what is secret; None of any other process.

    It is that of its last step, or of several by their names, as the process gets it that this one is a part of.
    """
    definition = instance.definition
    if not definition.is_workflow or instance.status != Status.COMPLETED:
        return None
    graph = graph_of(definition)
    left = {e.source for e in graph.edges if e.kind not in ("error", "deadline")}
    last = {node.id: node.kind for node in graph.nodes if node.id not in left}
    given = (StepStatus.DONE, StepStatus.SKIPPED)
    rows = StepRun.objects.filter(instance=instance.pk, node__in=last, status__in=given)
    rows = rows.exclude(kind__in=[StepKind.UNDO, StepKind.JOIN])
    whole = rows.filter(item=None).order_by("visit", "round")
    found = {run.node: run.result for run in whole.defer("element", "saved")}
    for node in found:
        if last[node] == "map":
            found[node] = _of_elements(rows.filter(node=node))
    told = masked(found, names_of(definition))
    return next(iter(told.values()), None) if len(last) == 1 else told


def _of_elements(rows: Any) -> list[Any] | None:
    """The results of a map's last visit, in the order of its elements."""
    visit = rows.order_by("-visit").values_list("visit", flat=True).first()
    elements = rows.filter(visit=visit, item__isnull=False).order_by("item", "round")
    found = dict(elements.values_list("item", "result")[: ELEMENTS + 1])
    return list(found.values()) if len(found) <= ELEMENTS else None
