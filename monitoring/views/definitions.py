from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from monitoring.access import for_viewers
from monitoring.diagrams import transition_table
from monitoring.queries.definition.page import DefinitionPage, definition_page
from monitoring.queries.definition.steps import step_page
from monitoring.queries.instances import Filters
from monitoring.views.listing import listing
from monitoring.views.page import page
from monitoring.views.sharing import shared

FEW = 20
"""Instances below a definition's map."""


@require_safe
@for_viewers
@shared
def detail(request: HttpRequest, name: str) -> HttpResponse:
    """One definition: its map, the instances in the chosen step, its transition table."""
    filters = Filters.from_query(request.GET, request.user, definition=name)
    shown = definition_page(name, filters)
    return page(
        request,
        "definition",
        page=shown,
        filters=filters,
        fixed=["definition"],
        listing=listing(request, filters, FEW),
        redrawn="undrawn" in request.GET and not shown.drawing.pending,
        **_table(request, shown),
    )


def _table(request: HttpRequest, shown: DefinitionPage) -> dict[str, Any]:
    """The transition table of a process manager, the table of steps of a workflow."""
    if not shown.is_workflow:
        return {"table": transition_table(shown.graph)}
    search, number = request.GET.get("search", ""), request.GET.get("page", "")
    group = shown.drawing.group(request.GET.get("group", ""))
    args = shown.definition, shown.graph, shown.counts, search, number, group
    return {"steps": step_page(*args)}


@require_safe
@for_viewers
def picture(request: HttpRequest, name: str, form: str) -> HttpResponse:
    """The diagram as a file: `svg` or `dot`, with `?counts=1` as it is now."""
    shown = definition_page(
        name, Filters.from_query(request.GET, request.user, definition=name)
    )
    if form == "svg":
        return svg_file(
            shown.drawing.standalone(shown.state if "counts" in request.GET else None),
            name,
        )
    if form == "dot":
        return attachment(shown.drawing.dot, "text/vnd.graphviz", f"{name}.dot")
    raise Http404


def svg_file(text: str, name: str) -> HttpResponse:
    """A picture to keep, which a browser will not run anything of."""
    response = attachment(text, "image/svg+xml", f"{name}.svg")
    response["Content-Security-Policy"] = (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'"
    )
    return response


def attachment(text: str, kind: str, name: str) -> HttpResponse:
    response = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
