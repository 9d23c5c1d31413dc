"""The table of visits of a process; the database searches and pages them, and cuts results and errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet

from monitoring.base.graphs import nodes_of, stored_graph
from monitoring.base.masking import names_of
from monitoring.diagrams.sketch import Part
from monitoring.process.revision.moment import ProcessMoment
from monitoring.process.steps.elements import (
    SHOWN,
    ElementPage,
    VisitFilters,
    element_page,
    element_text,
    mask_element,
    visits_in_state,
    with_beginnings,
)
from monitoring.process.steps.step_states import StepState, visit_status
from monitoring.process.steps.trouble import last_line
from monitoring.queries.lists import KeyedPage, page_by_key
from orchestrator.definition.secrets import mask_fields, mask_json
from orchestrator.models import ProcessInstance, Status, StepKind, StepRun, StepStatus
from orchestrator.secret_names import process_secrets
from orchestrator.text import unpack_text

PAGE = 30

ENDS = 6
"""The maximum number of last steps whose results are shown together."""

FOUND = 500
"""The maximum number of steps that a search finds by their labels."""

MEMBERS = 30_000
"""The maximum number of steps of a part of the diagram in a filter; a statement has no room for more."""

ELEMENTS = 1_000
"""The maximum number of elements of a map with a result in the answer; the file of its elements has more."""


@dataclass(frozen=True)
class RunRow:
    """One visit: its place and length as shares of the life of the process, and its outcome."""

    run: StepRun
    label: str
    status: str
    duration: timedelta
    begins: float
    lasts: float
    result: str
    error: str
    cut: bool = False
    """Whether the result is cut."""

    @property
    def open(self) -> bool:
        return self.run.finished_at is None

    @property
    def said(self) -> str:
        """The error in one line."""
        return last_line(unpack_text(self.error, self.run.text))

    @property
    def element(self) -> str:
        """The value of a map's element as people read it."""
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

    filters: VisitFilters
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
        """The filters for the address of the next page, with an ampersand at the end if there are any."""
        there = {
            "group": self.group.id if self.group else "",
            "visit": self.filters.visit if self.elements else "",
        }
        given = self.filters.parameters(**there, runs="")
        return f"{urlencode(given)}&" if given else ""


def run_page(
    moment: ProcessMoment, states: Mapping[str, StepState], filters: VisitFilters
) -> RunPage:
    """Return a page of the current visits of a process, or of the elements of a map.

    Args:
        moment: now.
        states: the states of its steps.
        filters: the filters of the table.
    """
    step = nodes_of(moment.definition).get(filters.step)
    if step is not None and step.kind == "map":
        elements = element_page(moment.present, filters)
        if elements is not None:
            return _map_page(elements, moment, states, filters)
    rows, secrets = _matching(moment, filters), process_secrets(moment.present)
    group = moment.drawing.group(filters.group)
    if group is not None:
        rows = rows.filter(node__in=group.members[:MEMBERS])
    page = page_by_key(with_beginnings(rows).order_by("-pk"), PAGE, filters.runs)
    shown = table_rows(
        (mask_element(run, secrets) for run in page.rows), moment, states
    )
    return RunPage(shown, page.older, filters=filters, group=group)


def _map_page(
    elements: ElementPage,
    moment: ProcessMoment,
    states: Mapping[str, StepState],
    filters: VisitFilters,
) -> RunPage:
    """Return the elements of a map as rows, after the map itself on an unfiltered first page."""
    alone = filters.search or filters.state or filters.runs
    found = [*([] if alone else [elements.head]), *elements.rows]
    shown = table_rows(found, moment, states)
    return RunPage(shown, elements.older, filters=filters, elements=elements)


def newest_rows(
    moment: ProcessMoment, states: Mapping[str, StepState], step: str, most: int
) -> list[RunRow]:
    """Return the newest visits of one step as rows of the table, without the elements of a map."""
    rows = StepRun.objects.filter(instance=moment.present, item=None, node=step)
    rows = rows.exclude(status=StepStatus.SUPERSEDED)
    return table_rows(with_beginnings(rows).order_by("-pk")[:most], moment, states)


def outcomes_of(moment: ProcessMoment) -> list[RunRow]:
    """Return the results of the last steps of a process that has ended."""
    if moment.instance.finished_at is None:
        return []
    leading = {edge.source for edge in moment.graph.edges if edge.kind != "error"}
    ends = [node.id for node in moment.graph.nodes if node.id not in leading][:ENDS]
    rows = moment.present.step_runs.filter(node__in=ends, item=None)
    rows = rows.filter(status__in=[StepStatus.DONE, StepStatus.SKIPPED])
    rows = rows.exclude(kind=StepKind.UNDO).exclude(result=None).order_by("pk")
    return table_rows(with_beginnings(rows)[:ENDS], moment)


def declined_visit(moment: ProcessMoment) -> RunRow | None:
    """Return the visit whose refusal undid a process; None for any other process."""
    if moment.instance.status != Status.CANCELLED:
        return None
    rows = moment.present.step_runs.filter(declined=True, status=StepStatus.FAILED)
    newest = with_beginnings(rows).order_by("-pk")[:1]
    return next(iter(table_rows(newest, moment)), None)


def notable_visits(rows: QuerySet[StepRun]) -> QuerySet[StepRun]:
    """Limit visits to open ones without joins; elements of maps only if they failed or are retried."""
    trouble = Q(status__in=[StepStatus.FAILED, StepStatus.RETRYING])
    rows = rows.filter(finished_at=None).exclude(kind=StepKind.JOIN)
    return rows.filter(Q(item=None) | trouble)


def _matching(moment: ProcessMoment, filters: VisitFilters) -> QuerySet[StepRun]:
    rows, labels = StepRun.objects.filter(instance=moment.present), moment.labels
    if filters.step:
        rows = rows.filter(node=filters.step)
    elif not filters.any:
        # Without elements of maps, and without joins that wait for their branches.
        rows = rows.filter(item=None).exclude(kind=StepKind.JOIN, finished_at=None)
    every_open = filters.state == "open" and not filters.step
    rows = notable_visits(rows) if every_open else visits_in_state(rows, filters.state)
    wanted = filters.search
    if wanted.removeprefix("#").isdecimal():
        return rows.filter(item=int(wanted.removeprefix("#")[:9]))
    if wanted:
        low = wanted.lower()
        names = [n for n, label in labels.items() if low in label.lower() or low in n]
        rows = rows.filter(Q(node__in=names[:FOUND]) | Q(error__icontains=wanted))
    return rows


def table_rows(
    runs: Iterable[StepRun],
    moment: ProcessMoment,
    states: Mapping[str, StepState] | None = None,
) -> list[RunRow]:
    """Return visits as rows of a table at a moment.

    Args:
        runs: the visits at the moment.
        moment: the moment.
        states: the states of a workflow's steps, if open maps may be among the visits.
    """
    hidden = names_of(moment.present.definition)
    return [_row(run, moment, states or {}, hidden) for run in runs]


def _row(
    run: StepRun,
    moment: ProcessMoment,
    states: Mapping[str, StepState],
    hidden: frozenset[str],
) -> RunRow:
    instance = moment.instance
    ended = run.finished_at or moment.until
    lived = (instance.finished_at or moment.until) - instance.started_at
    whole = max(lived.total_seconds(), 1e-3)
    begins = max((run.started_at - instance.started_at).total_seconds(), 0) / whole
    lasts = max((ended - run.started_at).total_seconds(), 0) / whole
    result = getattr(run, "result_text", None) or ""
    return RunRow(
        run,
        moment.labels.get(run.node, run.node),
        visit_status(run, instance, states),
        ended - run.started_at,
        min(begins, 0.995) * 100,
        max(min(lasts, 1 - min(begins, 0.995)), 0.005) * 100,
        mask_json(result, hidden),
        getattr(run, "error_text", None) or "",
        cut=len(result) > SHOWN,
    )


def workflow_result(instance: ProcessInstance) -> Any:
    """Return the result of a completed workflow, with secrets masked; None for any other process.

    It is the result of the last step, or the results of several last steps by name, as for a parent process.
    """
    definition = instance.definition
    if not definition.is_workflow or instance.status != Status.COMPLETED:
        return None
    graph = stored_graph(definition)
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
    told = mask_fields(found, names_of(definition))
    return next(iter(told.values()), None) if len(last) == 1 else told


def _of_elements(rows: Any) -> list[Any] | None:
    """Return the results of a map's last visit, in the order of its elements."""
    visit = rows.order_by("-visit").values_list("visit", flat=True).first()
    elements = rows.filter(visit=visit, item__isnull=False).order_by("item", "round")
    found = dict(elements.values_list("item", "result")[: ELEMENTS + 1])
    return list(found.values()) if len(found) <= ELEMENTS else None
