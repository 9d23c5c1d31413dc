"""The answers of the administration's pages for our tables, in any project."""

import logging
from functools import wraps
from typing import Any

from django.contrib import admin
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern

from monitoring.base.access import ViewFunction
from monitoring.base.directions import show_directions
from orchestrator.middleware import UNTAKEN

log = logging.getLogger(__name__)


class ConsoleAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not subscriptable at run time
    """Answers 404 to input that no column can take, and shows the characters that change the direction of a text."""

    def get_urls(self) -> list[URLPattern]:
        return [
            URLPattern(
                one.pattern, _answering(one.callback), one.default_args, one.name
            )
            for one in super().get_urls()
        ]


def _answering(view: ViewFunction) -> ViewFunction:
    @wraps(view)
    def answering(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # PostgreSQL refuses it in a filter.
        if "%00" in request.META["QUERY_STRING"]:
            raise Http404
        try:
            return show_directions(view(request, *args, **kwargs))
        except UNTAKEN as error:
            if request.method not in ("GET", "HEAD"):
                raise
            log.warning("%r is answered with 404", request.path, exc_info=error)
            raise Http404 from error

    return answering
