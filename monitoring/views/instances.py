from functools import partial
from uuid import UUID

from django.core.handlers.asgi import ASGIRequest
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    JsonResponse,
    StreamingHttpResponse,
)
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.views.decorators.http import require_safe

from monitoring.access import for_viewers
from monitoring.buttons import dialogs_of
from monitoring.queries.instance.ledger_lines import ledger_lines, ledger_lines_async
from monitoring.queries.instance.page import instance_ledger, instance_page
from monitoring.queries.instance.visits import RunFilters
from monitoring.queries.instances import Filters
from monitoring.views.definitions import svg_file
from monitoring.views.listing import listing
from monitoring.views.page import page
from monitoring.views.sharing import shared
from orchestrator.engine.operations import Circumstances
from orchestrator.models import Definition, ProcessInstance, Status, StepRun


@require_safe
@for_viewers
@shared
def index(request: HttpRequest) -> HttpResponse:
    """Instances, narrowed by what the URL says."""
    filters = Filters.from_query(request.GET, request.user).by_name()
    return page(
        request,
        "instances",
        filters=filters,
        fixed=[],
        listing=listing(request, filters),
        names=Definition.objects.order_by("name")
        .values_list("name", flat=True)
        .distinct(),
        statuses=Status.values,
    )


@require_safe
@for_viewers
@shared
def detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One instance, live; `?before=` pages back in its history, `?at=` shows it as it was after a transition."""
    return page(request, "instance", **instance_context(request, pk))


@require_safe
@for_viewers
def picture(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The instance's diagram as it is now, as a file."""
    shown = instance_page(pk, request.user)
    return svg_file(
        shown.drawing.standalone(shown.state), f"{shown.instance.name}-{pk}"
    )


@require_safe
@for_viewers
def ledger_rows(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Rows of the ledger before a transition, for a page that is scrolled."""
    before, at = (_number(request.GET.get(name, "")) for name in ("before", "at"))
    shown = instance_ledger(pk, request.user, before or None, at)
    context = {
        "page": shown,
        "instance": shown.instance,
        "is_workflow": shown.is_workflow,
    }
    rows = render_to_string("monitoring/instance/ledger_rows.html", context, request)
    answer = f"<!DOCTYPE html><table>{rows}</table>"
    return HttpResponse(answer, headers={"Cache-Control": "no-store"})


@require_safe
@for_viewers
def ledger(request: HttpRequest, pk: UUID) -> StreamingHttpResponse:
    """The whole ledger as JSON lines, the oldest transition first; written as it is read."""
    instance = get_object_or_404(ProcessInstance, pk=pk)
    awaited = isinstance(request, ASGIRequest)
    lines = ledger_lines_async(instance) if awaited else ledger_lines(instance)
    name = f'attachment; filename="ledger-{pk}.jsonl"'
    headers = {"Content-Disposition": name, "Cache-Control": "no-store"}
    return StreamingHttpResponse(lines, "application/x-ndjson", headers=headers)


@require_safe
@for_viewers
def result(request: HttpRequest, pk: UUID, run: int) -> HttpResponse:
    """The whole result of a step's visit, as a file."""
    rows = StepRun.objects.filter(instance=pk, pk=run)
    found = rows.values_list("node", "result").first()
    if found is None:
        raise Http404
    node, value = found
    answer = JsonResponse(value, safe=False, json_dumps_params={"ensure_ascii": False})
    name = "".join(char if char.isalnum() else "-" for char in node)
    answer["Content-Disposition"] = (
        f'attachment; filename="{name.encode("ascii", "ignore").decode()}.json"'
    )
    return answer


def _number(text: str) -> int | None:
    """A number of a transition; 0, which there is none of, for what is no number; None where nothing is asked for."""
    if not text:
        return None
    return int(text[:9]) if text.isascii() and text.isdecimal() else 0


def instance_context(request: HttpRequest, pk: UUID) -> dict[str, object]:
    """What the templates of one instance need."""
    before, at = request.GET.get("before", ""), request.GET.get("at", "")
    filters = RunFilters.from_query(request.GET)
    shown = instance_page(
        pk, request.user, _number(before) or None, filters, _number(at)
    )
    place = str(shown.moment.revision) if shown.moment is not None else ""
    crossed = request.GET.get("shown", "") != place
    return {
        "page": shown,
        "instance": shown.instance,
        "workflow": shown.workflow,
        "is_workflow": shown.is_workflow,
        "drawing": shown.drawing,
        "before": before,
        "never": at if at and not place else "",
        # Whether an open page goes to another moment; and whether what it shows may have changed: the past does not.
        "crossed": crossed,
        "moved": crossed or not place,
        # Not while the reader has scrolled down in it.
        "told": crossed or not (place or "held" in request.GET),
        # Not for an open page, which has them.
        "dialogs": partial(dialogs_of, Circumstances(shown.present), request.user),
        "redrawn": "undrawn" in request.GET and not shown.drawing.pending,
    }
