"""A page whole, or the live parts of it that an open page asks for."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from monitoring.access import seen_in
from monitoring.fragments import Fragments
from monitoring.masking import sees_data
from monitoring.open_pages import is_live
from orchestrator.models import Definition


def page(
    request: HttpRequest, name: str, *, status: int = 200, **context: Any
) -> HttpResponse:
    """Renders `monitoring/<name>/page.html`; with `?since=` its live parts alone."""
    shown = live_parts if is_live(request) else whole
    text = shown(request, name, context)
    return HttpResponse(text, status=status, headers={"Cache-Control": "no-store"})


def whole(request: HttpRequest, name: str, context: Mapping[str, Any]) -> SafeString:
    """The page as it is loaded."""
    # Asked where a template wants to know it: not all do.
    shown = {**context, "sees_data": partial(sees_data, request.user)}
    return render_to_string(f"monitoring/{name}/page.html", shown, request)


def live_parts(
    request: HttpRequest, name: str, context: Mapping[str, Any]
) -> SafeString:
    """The live parts of the page as they are now."""
    fragments = Fragments()
    whole(request, name, {**context, "fragments": fragments})
    return fragments.html


def named(request: HttpRequest) -> str:
    """The definition that the address names; "" for all."""
    return request.GET.get("definition", "").replace("\0", "")[:100]


def names_to_choose(request: HttpRequest) -> Iterable[str]:
    """The definitions to which the reader may narrow a list."""
    seen = seen_in(request)
    if seen is not None:
        return sorted(seen)
    names = Definition.objects.order_by("name").values_list("name", flat=True)
    return names.distinct()


def shown_rows(request: HttpRequest) -> list[str]:
    """The keys of the rows that the asking page shows."""
    return [key for key in request.GET.get("rows", "").split(",") if key][:200]
