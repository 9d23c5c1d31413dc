"""Who is let in: whoever brings the access token of somebody who may. A session opens the description alone."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from ninja.security.base import AuthBase

from monitoring.access import DefinitionsOf, lets_in
from monitoring.actions import address_of
from monitoring.api.answers import NotAnswered
from monitoring.api.wrong_tokens import wrong_tokens
from orchestrator.access_tokens import digest_of, holder_of
from orchestrator.models import AccessToken

security = logging.getLogger("orchestrator.security")

View = Callable[..., HttpResponse]


class Token(AuthBase):
    """Has a request act for the owner of the access token that it brings.

    Args:
        more: permissions that are needed beside the one to look at processes.
        of: the definitions that the address is about, for those who may look at some alone.
    """

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, *more: str, of: DefinitionsOf | None = None) -> None:
        super().__init__()
        self._more, self._of = more, of

    def __call__(self, request: HttpRequest) -> AccessToken:
        """Has the request act for the owner of its token.

        Raises:
            NotAnswered: it has no good token.
            PermissionDenied: the owner may not look at processes, or not at what is asked for.
        """
        token = holder_of(_digest(request))
        if token is None:
            raise _unknown(request)
        request.user = token.owner
        request.way = f"token {token.name}"  # type: ignore[attr-defined]  # for the audit
        parts = request.resolver_match.kwargs if request.resolver_match else {}
        if not lets_in(request, parts, *self._more, of=self._of):
            raise PermissionDenied
        return token


def _digest(request: HttpRequest) -> str:
    """The digest of the token that is brought; its value is kept by nothing from here on, no error page has it."""
    given = request.META.pop("HTTP_AUTHORIZATION", "")
    request.__dict__.pop("headers", None)
    scheme, _space, value = given.strip().partition(" ")
    return digest_of(value.strip()) if scheme.lower() == "bearer" else ""


def _unknown(request: HttpRequest) -> NotAnswered:
    """The refusal of a request without a token, or with a wrong one."""
    address = address_of(request) or ""
    wait = wrong_tokens.add(address)
    if wait:
        said = _("Too many requests without a token that is good. Wait a while.")
        return NotAnswered(429, "too_many", said, {"Retry-After": str(wait)})
    security.warning("no good access token: %a from %s", request.path[:200], address)
    said = _("Bring an access token that is good: Authorization: Bearer …")
    challenge = {"WWW-Authenticate": 'Bearer realm="Procession"'}
    return NotAnswered(401, "unauthorized", said, challenge)
