"""Who may ask: whoever brings the access token of somebody who may. A session is never looked at."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from monitoring.access import may
from monitoring.actions import FromProgram, address_of
from monitoring.api.answers import NotAnswered
from monitoring.api.bodies import read
from monitoring.api.wrong_tokens import wrong_tokens
from orchestrator.access_tokens import digest_of, holder_of
from orchestrator.missing_tables import MIGRATE, lacks_tables

security = logging.getLogger("orchestrator.security")

READS = ("GET", "HEAD")

View = Callable[..., HttpResponse]


def for_tokens(*methods: str, more: tuple[str, ...] = ()) -> Callable[[View], View]:
    """Lets those in who bring a good token, by some methods.

    The view finds the owner of the token in `request.user`, and what was posted in `request.POST`.

    Args:
        methods: those.
        more: permissions that are needed beside the one to look at processes.
    """

    def decorated(view: View) -> View:
        @csrf_exempt  # a browser of somebody else's brings cookies, and no token
        @login_not_required
        @wraps(view)
        def answering(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                _let_in(request, more)
                _check_method(request, methods)
                if request.method not in READS:
                    request.POST = read(request)  # type: ignore[assignment]  # forms take any mapping
                return view(request, *args, **kwargs)
            except Exception as error:
                refusal = _refusal(error)
                if refusal is None:
                    raise
                return refusal.response()

        return answering

    return decorated


def _refusal(error: Exception) -> NotAnswered | None:
    """What whoever asks is told of an error; None where it is one of ours."""
    if isinstance(error, NotAnswered):
        return error
    if isinstance(error, Http404):
        return NotAnswered(404, "not_found", _("There is nothing at this address."))
    if isinstance(error, PermissionDenied):
        return NotAnswered(403, "forbidden", _("Your account may not do this."))
    if isinstance(error, DatabaseError) and lacks_tables(error):
        return NotAnswered(503, "no_tables", MIGRATE)
    return None


def posted(request: HttpRequest) -> FromProgram:
    """What was posted, of a request that was let in."""
    said: Any = request.POST
    assert isinstance(said, FromProgram)  # noqa: S101  for type checkers
    return said


def _let_in(request: HttpRequest, more: tuple[str, ...]) -> None:
    """Has the request act for the owner of its token.

    Raises:
        NotAnswered: it has no good one.
        PermissionDenied: its owner may not look at processes, or not at what is asked for.
    """
    token = holder_of(_digest(request))
    if token is None:
        raise _not_known(request)
    request.user = token.owner
    request.way = f"token {token.name}"  # type: ignore[attr-defined]  # for the audit
    if not may(token.owner, *more):
        raise PermissionDenied


def _digest(request: HttpRequest) -> str:
    """The digest of the token that is brought; its value is kept by nothing from here on, no error page has it."""
    given = request.META.pop("HTTP_AUTHORIZATION", "")
    request.__dict__.pop("headers", None)
    scheme, _space, value = given.strip().partition(" ")
    return digest_of(value.strip()) if scheme.lower() == "bearer" else ""


def _not_known(request: HttpRequest) -> NotAnswered:
    """The refusal of whoever brings none, or a wrong one."""
    address = address_of(request) or ""
    wait = wrong_tokens.add(address)
    if wait:
        said = _("Too many requests without a token that is good. Wait a while.")
        return NotAnswered(429, "too_many", said, {"Retry-After": str(wait)})
    security.warning("no good access token: %a from %s", request.path[:200], address)
    said = _("Bring an access token that is good: Authorization: Bearer …")
    return NotAnswered(
        401, "unauthorized", said, {"WWW-Authenticate": 'Bearer realm="Procession"'}
    )


def _check_method(request: HttpRequest, methods: tuple[str, ...]) -> None:
    known = (*methods, "HEAD") if "GET" in methods else methods
    if request.method not in known:
        said = _("This address is asked by other methods.")
        allow = {"Allow": ", ".join(known)}
        raise NotAnswered(405, "method_not_allowed", said, allow)
