"""Access of programs: by the access token of a user with permission. A session opens only the description."""

from __future__ import annotations

import logging

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.utils.translation import gettext as _
from ninja.security.base import AuthBase

from monitoring.api.answers import NotAnswered
from monitoring.api.wrong_tokens import wrong_tokens
from monitoring.base.access import Scope, may_open
from monitoring.base.requests import client_address
from orchestrator.access_tokens import find_token, token_digest
from orchestrator.models import AccessToken

security = logging.getLogger("orchestrator.security")


class Token(AuthBase):
    """Makes a request act for the owner of its access token.

    Args:
        more: permissions that are needed besides the one to view processes.
        of: the definitions of the address, for owners with grants.
    """

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, *more: str, of: Scope | None = None) -> None:
        super().__init__()
        self._more, self._of = more, of

    def __call__(self, request: HttpRequest) -> AccessToken:
        """Make the request act for the owner of its token.

        Raises:
            NotAnswered: the request has no valid token.
            PermissionDenied: the owner may not view processes, or lacks a further permission.
        """
        token = find_token(_digest(request))
        if token is None:
            raise _token_refusal(request)
        request.user = token.owner
        request.way = f"token {token.name}"  # type: ignore[attr-defined]  # for the audit
        parts = request.resolver_match.kwargs if request.resolver_match else {}
        if not may_open(request, parts, *self._more, of=self._of):
            raise PermissionDenied
        return token


def _digest(request: HttpRequest) -> str:
    """Return the digest of the request's token, and remove the token, so that no error page shows it."""
    given = request.META.pop("HTTP_AUTHORIZATION", "")
    request.__dict__.pop("headers", None)
    scheme, _space, value = given.strip().partition(" ")
    return token_digest(value.strip()) if scheme.lower() == "bearer" else ""


def _token_refusal(request: HttpRequest) -> NotAnswered:
    """Return the refusal of a request without a token, or with a wrong one."""
    address = client_address(request) or ""
    wait = wrong_tokens.add(address)
    if wait:
        said = _("Too many requests without a token that is good. Wait a while.")
        return NotAnswered(429, "too_many", said, {"Retry-After": str(wait)})
    security.warning("no good access token: %a from %s", request.path[:200], address)
    said = _("Bring an access token that is good: Authorization: Bearer …")
    challenge = {"WWW-Authenticate": 'Bearer realm="Procession"'}
    return NotAnswered(401, "unauthorized", said, challenge)
