"""A page whole, or the fragments of it that an open page asks for."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def page(request: HttpRequest, name: str, **context: Any) -> HttpResponse:
    """Renders `monitoring/<name>/page.html`; with `?since=` its fragments, `monitoring/<name>/live.html`."""
    part = "live" if is_live(request) else "page"
    response = render(request, f"monitoring/{name}/{part}.html", context)
    response["Cache-Control"] = "no-store"
    return response


def is_live(request: HttpRequest) -> bool:
    """Whether an open page asks for what has changed on it."""
    return bool(getattr(request, "htmx", False)) and "since" in request.GET


def shown_rows(request: HttpRequest) -> list[str]:
    """The keys of the rows that the asking page shows."""
    return [key for key in request.GET.get("rows", "").split(",") if key][:200]
