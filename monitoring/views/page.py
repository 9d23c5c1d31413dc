"""Rendering of whole pages, and of the live parts that an open page requests."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from monitoring.base.access import visible_definitions
from monitoring.base.masking import sees_data
from monitoring.base.requests import is_live
from monitoring.live.fragments import Fragments
from monitoring.probes import pulse
from orchestrator.models import Definition

UNHEARD = "Procession-Unheard"
"""The header of live parts that says that open pages hear of no changes: the channel layer is silent."""


def page(
    request: HttpRequest, name: str, *, status: int = 200, **context: Any
) -> HttpResponse:
    """Render `monitoring/<name>/page.html`; with `?since=` only its live parts."""
    shown, headers = render_page, {"Cache-Control": "no-store"}
    if is_live(request):
        shown = live_parts
        if pulse.live.beat().up is False:
            headers[UNHEARD] = "1"
    text = shown(request, name, context)
    return HttpResponse(text, status=status, headers=headers)


def render_page(
    request: HttpRequest, name: str, context: Mapping[str, Any]
) -> SafeString:
    """Return the whole page."""
    # A callable, since not all templates need it.
    shown = {**context, "sees_data": partial(sees_data, request.user)}
    return render_to_string(f"monitoring/{name}/page.html", shown, request)


def live_parts(
    request: HttpRequest, name: str, context: Mapping[str, Any]
) -> SafeString:
    """Return the live parts of the page."""
    fragments = Fragments()
    render_page(request, name, {**context, "fragments": fragments})
    return fragments.html


def definition_in(request: HttpRequest) -> str:
    """Return the definition of the address; "" for all."""
    return request.GET.get("definition", "").replace("\0", "")[:100]


def names_to_choose(request: HttpRequest) -> Iterable[str]:
    """Return the definitions by which the reader may filter a list."""
    seen = visible_definitions(request)
    if seen is not None:
        return sorted(seen)
    names = Definition.objects.order_by("name").values_list("name", flat=True)
    return names.distinct()


def shown_rows(request: HttpRequest) -> list[str]:
    """Return the keys of the rows of the open page."""
    return [key for key in request.GET.get("rows", "").split(",") if key][:200]
