"""The page for a person whom single sign-on does not let in, with what to do."""

import logging
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

security = logging.getLogger("orchestrator.security")

REASONS = {
    "cancelled": HTTPStatus.FORBIDDEN,
    "failed": HTTPStatus.FORBIDDEN,
    "inactive": HTTPStatus.FORBIDDEN,
    "no-group": HTTPStatus.FORBIDDEN,
    "unreachable": HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The subject of the page, and the status of the answer."""


def refused(request: HttpRequest, reason: str, detail: object) -> HttpResponse:
    """Return the page, and log why: people are not told what the provider has answered."""
    security.warning(
        "single sign-on refused (%s): %a from %s",
        reason,
        str(detail)[:300],
        request.META.get("REMOTE_ADDR", "?"),
    )
    page = "registration/single_sign_on_refused.html"
    about = {"reason": reason, "provider": settings.PROCESSION_SSO_NAME}
    answer = render(request, page, about, status=REASONS[reason])
    answer["Cache-Control"] = "no-store"
    return answer
