"""The description of the API (OpenAPI 3.1), made of its routes and of the actions, and a page to try it on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe
from ninja.openapi.schema import REF_TEMPLATE

from monitoring.access import of_all_seen, page_for
from monitoring.api.access import Token
from monitoring.api.answers import PROBLEM, NotAnswered, Renderer
from monitoring.api.calls import api
from monitoring.api.descriptions import by_rest, operations_of
from monitoring.api.schemas import DoneAction, ProblemDocument, RefusedCall, SentEvent
from monitoring.views.page import page

View = Callable[[HttpRequest], HttpResponseBase]

REFUSED = {
    "description": "The call was refused.",
    "content": {
        media: {"schema": {"$ref": REF_TEMPLATE.format(model=kind.__name__)}}
        for media, kind in (
            (str(Renderer.media_type), RefusedCall),
            (PROBLEM, ProblemDocument),
        )
    },
}
"""The answer of every call that is refused."""


def document() -> dict[str, Any]:
    """The description; it tells of the API alone, and of nothing that is stored."""
    found: dict[str, Any] = api.get_openapi_schema(
        path_prefix=reverse("monitoring:api")
    )
    for kind in (DoneAction, ProblemDocument, RefusedCall, SentEvent):
        found["components"]["schemas"][kind.__name__] = kind.json_schema()
    paths = found["paths"]
    for operation in by_rest():
        for address, told in operations_of(operation).items():
            paths.setdefault(address, {})["post"] = told
    for methods in paths.values():
        for told in methods.values():
            told["responses"]["default"] = REFUSED
    return found


def for_readers(*, leads_to_sign_in: bool) -> Callable[[View], View]:
    """Opens a view to people who have signed in, and to whoever brings a token.

    Args:
        leads_to_sign_in: whether it is a page, which leads those who have not signed in to where they can.
    """

    def decorated(view: View) -> View:
        of_session = page_for(of=of_all_seen)(view)

        @require_safe
        @login_not_required
        @wraps(view)
        def guarded(request: HttpRequest) -> HttpResponseBase:
            signed_in = leads_to_sign_in or request.user.is_authenticated
            # A proxy may ask for a password of its own, which a browser then brings with each request.
            brought = request.META.get("HTTP_AUTHORIZATION", "").lstrip().lower()
            if signed_in and not brought.startswith("bearer "):
                return of_session(request)
            try:
                Token(of=of_all_seen)(request)
            except (NotAnswered, PermissionDenied, DatabaseError) as refusal:
                return api.on_exception(request, refusal)
            return view(request)

        return guarded

    return decorated


@for_readers(leads_to_sign_in=False)
def as_json(request: HttpRequest) -> HttpResponse:
    """The description as a program reads it."""
    content = Renderer().render(request, document(), response_status=200)
    return HttpResponse(
        content, Renderer.media_type, headers={"Cache-Control": "no-store"}
    )


@for_readers(leads_to_sign_in=True)
def try_out(request: HttpRequest) -> HttpResponse:
    """The description as people read it; calls can be tried out with a token."""
    return page(request, "api")
