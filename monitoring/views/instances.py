from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.core.handlers.asgi import ASGIRequest
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    JsonResponse,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import content_disposition_header

from monitoring.base.access import (
    DATA,
    list_scope,
    page_for,
    process_scope,
    visible_definitions,
)
from monitoring.base.masking import names_of, sees_data
from monitoring.forms.buttons import dialogs_of, header_buttons
from monitoring.lists.processes.columns import format_columns
from monitoring.lists.processes.condition_form import ConditionForm
from monitoring.lists.processes.declared_fields import field_names
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import process_batches
from monitoring.lists.processes.saved_views import views_for
from monitoring.live.sharing import share_answer, shared_part
from monitoring.probes.machinery import machinery
from monitoring.probes.unserved_work import unserved_steps
from monitoring.process.history.history_lines import history_lines, history_lines_async
from monitoring.process.page import InstancePage, instance_history, instance_page
from monitoring.process.steps.elements import (
    VisitFilters,
    element_batches,
    element_text,
)
from monitoring.process.subject import subject_link
from monitoring.process.subprocess import opened_subprocess
from monitoring.queries.lists import parse_number
from monitoring.queries.processes import process_rows
from monitoring.views.definitions import svg_file
from monitoring.views.lists.exports import Columns, download, export_list
from monitoring.views.lists.listing import listing
from monitoring.views.page import names_to_choose, page
from orchestrator.definition.secrets import mask_fields
from orchestrator.engine.operations import Circumstances, save_view
from orchestrator.models import ProcessInstance, Status, StepRun

COLUMNS: Columns = {
    "process": lambda row: str(row.pk),
    "key": lambda row: row.correlation_key,
    "definition": lambda row: row.name,
    "version": lambda row: row.definition.version,
    "status": lambda row: row.status,
    "step": lambda row: row.step,
    "summary": lambda row: row.summary,
    "owner": lambda row: row.owner and row.owner.get_username(),
    "escalation_level": lambda row: row.escalation_level,
    "started": lambda row: row.started_at.isoformat(),
    "changed": lambda row: row.changed_at.isoformat(),
    "finished": lambda row: row.finished_at and row.finished_at.isoformat(),
}
"""The columns for programs: names and texts as stored, times in UTC."""


@page_for(of=list_scope)
@share_answer
def index(request: HttpRequest) -> HttpResponse:
    """The processes that match the filters of the address."""
    filters = Filters.from_query(request.GET, request.user).by_name()
    adding = ConditionForm.from_query(request.GET, filters.where)
    picked = request.GET.getlist("column")
    if (adding.sent or picked) and not adding.mistake:
        looks = {"columns": format_columns(picked) if picked else filters.columns}
        given = urlencode(filters.parameters(where=adding.where, **looks))
        return redirect(f"{reverse('monitoring:instances')}?{given}")
    return page(
        request,
        "instances",
        filters=filters,
        adding=adding,
        known_fields=field_names(filters.definition),
        # None of it for an open page, which has them.
        views=partial(views_for, request.user, visible_definitions(request)),
        share_why=partial(save_view.forbidden, request.user),
        saved_query=urlencode(filters.parameters()),
        new_key=uuid4(),
        fixed=[],
        listing=listing(request, filters),
        names=names_to_choose(request),
        statuses=Status.values,
    )


@page_for(of=list_scope)
def export(request: HttpRequest, form: str) -> HttpResponseBase:
    """The whole list as CSV or as lines of JSON."""
    filters = Filters.from_query(request.GET, request.user).by_name()
    return export_list(
        request, form, "processes", COLUMNS, filters, process_batches(filters)
    )


def process_row(row: ProcessInstance) -> dict[str, Any]:
    """Return a row for programs."""
    return {name: value(row) for name, value in COLUMNS.items()}


@page_for(of=process_scope)
@share_answer
def detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One instance, live; `?before=` pages back in its history, `?at=` shows it as it was after a transition."""
    return page(request, "instance", **instance_context(request, pk))


@page_for(of=process_scope)
def picture(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The instance's diagram as a file: as it is now, or with `?at=` as it was after a transition.

    The file of a past moment names it in words. 404 for a transition that does not exist.
    """
    at = _number(request.GET.get("at", ""))
    shown = instance_page(pk, request.user, at=at)
    name = f"{shown.instance.name}-{pk}"
    if at is None:
        return svg_file(shown.moment.drawing.standalone(shown.state), name)
    if not shown.moment.is_past:
        raise Http404
    title = f"{shown.instance} · {shown.said}"
    drawn = shown.moment.drawing.standalone(shown.state, title=title)
    return svg_file(drawn, f"{name}-at-{at}")


@page_for(of=process_scope)
def history_rows(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Return the rows of the history before a transition, for a page that is scrolled."""
    before, at = (_number(request.GET.get(name, "")) for name in ("before", "at"))
    shown = instance_history(pk, request.user, before or None, at)
    context = {
        "page": shown,
        "instance": shown.instance,
        "is_workflow": shown.moment.is_workflow,
        "sees_data": sees_data(request.user),
    }
    rows = render_to_string("monitoring/instance/history_rows.html", context, request)
    answer = f"<!DOCTYPE html><table>{rows}</table>"
    return HttpResponse(answer, headers={"Cache-Control": "no-store"})


@page_for(DATA, of=process_scope)
def history(request: HttpRequest, pk: UUID) -> StreamingHttpResponse:
    """Stream the whole history as JSON lines, the oldest transition first."""
    instance = get_object_or_404(process_rows(), pk=pk)
    awaited = isinstance(request, ASGIRequest)
    lines = history_lines_async(instance) if awaited else history_lines(instance)
    name = f'attachment; filename="history-{pk}.jsonl"'
    headers = {"Content-Disposition": name, "Cache-Control": "no-store"}
    return StreamingHttpResponse(lines, "application/x-ndjson", headers=headers)


@page_for(of=process_scope)
def elements(request: HttpRequest, pk: UUID, form: str) -> HttpResponseBase:
    """The elements of a map as a file, narrowed as the list of the page."""
    instance = get_object_or_404(process_rows(), pk=pk)
    filters = VisitFilters.from_query(request.GET, request.user)
    data, seen = sees_data(request.user), visible_definitions(request)

    def child_of(run: StepRun) -> str | None:
        shown = run.child and (seen is None or run.child.name in seen)
        return str(run.child_id) if shown else None

    columns: Columns = {
        "element": lambda run: run.item,
        "key": lambda run: element_text(run) if data else None,
        "status": lambda run: run.status,
        "attempt": lambda run: run.attempt,
        "round": lambda run: run.round,
        "started": lambda run: run.started_at.isoformat(),
        "finished": lambda run: run.finished_at and run.finished_at.isoformat(),
        "process": child_of,
        "error": lambda run: getattr(run, "error_text", ""),
    }
    parts = element_batches(instance, filters)
    return download(request, form, f"elements-{pk}", columns, parts)


@page_for(DATA, of=process_scope)
def result(request: HttpRequest, pk: UUID, run: int) -> HttpResponse:
    """The whole result of a step's visit, as a file."""
    rows = StepRun.objects.select_related("instance__definition")
    found = rows.defer("instance__data", "instance__definition__graph")
    visit = get_object_or_404(found, instance=pk, pk=run)
    value = mask_fields(visit.result, names_of(visit.instance.definition))
    answer = JsonResponse(value, safe=False, json_dumps_params={"ensure_ascii": False})
    answer["Cache-Control"] = "no-store"
    name = "".join(char if char.isalnum() else "-" for char in visit.node)
    answer.headers["Content-Disposition"] = content_disposition_header(
        as_attachment=True, filename=f"{name}.json"
    )
    return answer


def _number(text: str) -> int | None:
    """Return the number of a transition; 0, which no transition has, for other texts; None for ""."""
    if not text:
        return None
    return parse_number(text, 9) or 0


def _is_redrawn(request: HttpRequest, shown: InstancePage) -> bool:
    """Whether an open page gets another picture: a better one, or one of another version."""
    better = "undrawn" in request.GET and not shown.moment.drawing.pending
    own = shown.instance.definition.fingerprint
    return better or request.GET.get("drawn", own) != own


def _is_reopened(request: HttpRequest, shown: InstancePage) -> bool:
    """Whether an open page gets another sub-process, or another picture of it; the answer to a button leaves it."""
    drawn = shown.opened.drawn if shown.opened else ""
    return request.method != "POST" and request.GET.get("opened", "") != drawn


def _with_unserved_steps(request: HttpRequest, shown: InstancePage) -> InstancePage:
    """Mark the ready steps that no worker will do."""
    ready = any("is-ready" in node.classes for node in shown.state.nodes.values())
    if shown.moment.is_past or not ready:
        return shown
    steps = unserved_steps(shown.present, shared_part(request, machinery))
    return replace(shown, state=shown.state.marked(steps, "is-unserved"))


def instance_context(request: HttpRequest, pk: UUID) -> dict[str, Any]:
    """Return the context of the page of one process."""
    before, at = request.GET.get("before", ""), request.GET.get("at", "")
    filters = VisitFilters.from_query(request.GET, request.user)
    beside = request.GET.get("beside", "") == "now"
    shown = instance_page(
        pk, request.user, _number(before) or None, filters, _number(at), beside
    )
    shown = _with_unserved_steps(request, shown)
    if sub := request.GET.get("sub", "").replace("\0", ""):
        opened = opened_subprocess(shown.moment, sub)
        shown = replace(shown, opened=opened.for_whom(visible_definitions(request)))
    place = str(shown.moment.revision) if shown.moment.is_past else ""
    crossed = request.GET.get("shown", "") != place
    return {
        "page": shown,
        "instance": shown.instance,
        # Not for an open page whose header stays.
        "subject_link": partial(subject_link, shown.present),
        "workflow": shown.workflow,
        "is_workflow": shown.moment.is_workflow,
        "drawing": shown.moment.drawing,
        "before": before,
        # The page keeps a place for the second diagram, also while the reader looks at now.
        "beside": beside,
        "never": at if at and not place else "",
        # Whether an open page shows another moment, and whether its moment may have changed, as only now does.
        "crossed": crossed,
        "moved": crossed or not place,
        # Not while the reader has scrolled down in the history.
        "told": crossed or not (place or "held" in request.GET),
        "buttons": header_buttons(
            shown.present, shown.actions, shown.refusals, shown.primary
        ),
        # Not for an open page, which has them.
        "dialogs": partial(dialogs_of, Circumstances(shown.present), request.user),
        "drawn": shown.instance.definition.fingerprint,
        "redrawn": _is_redrawn(request, shown),
        "opened": shown.opened,
        "reopened": _is_reopened(request, shown),
    }
