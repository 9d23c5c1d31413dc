from typing import Any

from django.http import Http404, HttpRequest, HttpResponse

from monitoring.base.access import definition_scope, page_for
from monitoring.definition.filters import MapFilters
from monitoring.definition.page import DefinitionPage, definition_page
from monitoring.definition.steps import step_page
from monitoring.diagrams import transition_table
from monitoring.live.sharing import share_answer
from monitoring.views.lists.listing import listing
from monitoring.views.page import page

FEW = 20
"""Processes below a definition's map."""


@page_for(of=definition_scope)
@share_answer
def detail(request: HttpRequest, name: str) -> HttpResponse:
    """One definition: its map, the instances in the chosen step, its transition table."""
    filters = MapFilters.from_query(request.GET, request.user, definition=name)
    shown = definition_page(name, filters)
    drawn = request.GET.get("drawn", shown.definition.fingerprint)
    laid_out = "undrawn" in request.GET and not shown.drawing.pending
    return page(
        request,
        "definition",
        page=shown,
        filters=filters,
        fixed=["definition"],
        listing=listing(request, filters, FEW),
        # An open page may show the graph of a version that is the newest no more.
        redrawn=laid_out or drawn != shown.definition.fingerprint,
        **_table(request, shown),
    )


def _table(request: HttpRequest, shown: DefinitionPage) -> dict[str, Any]:
    """Return the transition table of a process manager, or the table of steps of a workflow."""
    if not shown.definition.is_workflow:
        return {"table": transition_table(shown.graph)}
    search, number = request.GET.get("search", ""), request.GET.get("page", "")
    group = shown.drawing.group(request.GET.get("group", ""))
    standing = shown.figures.standing
    args = shown.definition, shown.graph, standing, search, number, group
    return {"steps": step_page(*args)}


@page_for(of=definition_scope)
def definition_picture(request: HttpRequest, name: str, form: str) -> HttpResponse:
    """The map as a file, `svg` or `dot`, as the page shows it; with `?plain=1` only the declaration."""
    shown = definition_page(
        name, MapFilters.from_query(request.GET, request.user, definition=name)
    )
    plain = "plain" in request.GET
    drawing, file = shown.drawing, f"{name}-{shown.definition.version}"
    if form == "svg":
        layer = None if plain else shown.layer
        state = None if plain else shown.state
        return svg_file(drawing.standalone(state, layer), file)
    if form == "dot":
        text = drawing.dot if plain else drawing.dot_with(shown.state, shown.layer)
        return attachment(text, "text/vnd.graphviz", f"{file}.dot")
    raise Http404


def svg_file(text: str, name: str) -> HttpResponse:
    """Return a picture as a file, in which a browser runs no scripts."""
    response = attachment(text, "image/svg+xml", f"{name}.svg")
    response["Content-Security-Policy"] = (
        "sandbox; default-src 'none'; style-src 'unsafe-inline'"
    )
    return response


def attachment(text: str, kind: str, name: str) -> HttpResponse:
    response = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
