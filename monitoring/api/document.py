"""The OpenAPI 3.1 document of the API, from its routes and the actions, and a page to try calls."""

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

from monitoring.api.access import Token
from monitoring.api.answers import PROBLEM, NotAnswered, Renderer
from monitoring.api.descriptions import api_actions, operations_of
from monitoring.api.routes import api
from monitoring.api.schemas import DoneAction, ProblemDocument, RefusedCall, SentEvent
from monitoring.base.access import page_for, reader_scope
from monitoring.views.page import page

DocumentView = Callable[[HttpRequest], HttpResponseBase]

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
"""The answer to refused calls."""


def openapi_document() -> dict[str, Any]:
    """Return the document. It describes the API alone, and has nothing from the database."""
    found: dict[str, Any] = api.get_openapi_schema(
        path_prefix=reverse("monitoring:api")
    )
    for kind in (DoneAction, ProblemDocument, RefusedCall, SentEvent):
        found["components"]["schemas"][kind.__name__] = kind.json_schema()
    paths = found["paths"]
    for operation in api_actions():
        for address, told in operations_of(operation).items():
            paths.setdefault(address, {})["post"] = told
    for methods in paths.values():
        for told in methods.values():
            told["responses"]["default"] = REFUSED
    return found


def open_to_readers(
    *, leads_to_sign_in: bool
) -> Callable[[DocumentView], DocumentView]:
    """Open a view to signed-in users, and to requests with an access token.

    Args:
        leads_to_sign_in: whether other requests are redirected to the sign-in page.
    """

    def decorated(view: DocumentView) -> DocumentView:
        of_session = page_for(of=reader_scope)(view)

        @require_safe
        @login_not_required
        @wraps(view)
        def guarded(request: HttpRequest) -> HttpResponseBase:
            signed_in = leads_to_sign_in or request.user.is_authenticated
            # A browser sends the password of a proxy in the same header.
            brought = request.META.get("HTTP_AUTHORIZATION", "").lstrip().lower()
            if signed_in and not brought.startswith("bearer "):
                return of_session(request)
            return _answer_program(request, view)

        return guarded

    return decorated


def _answer_program(request: HttpRequest, view: DocumentView) -> HttpResponseBase:
    try:
        Token(of=reader_scope)(request)
    except (NotAnswered, PermissionDenied, DatabaseError) as refusal:
        return api.on_exception(request, refusal)
    return view(request)


@open_to_readers(leads_to_sign_in=False)
def openapi_json(request: HttpRequest) -> HttpResponse:
    """Return the document as JSON, for programs."""
    content = Renderer().render(request, openapi_document(), response_status=200)
    return HttpResponse(
        content, Renderer.media_type, headers={"Cache-Control": "no-store"}
    )


@open_to_readers(leads_to_sign_in=True)
def try_out(request: HttpRequest) -> HttpResponse:
    """Return the page of the document, on which people try calls with a token."""
    return page(request, "api")
