"""What has failed: groups of one cause, and one group with what was done about it."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from monitoring.access import for_viewers
from monitoring.places import NO_CAUSE
from monitoring.queries.bulk import newcomers, on_cause
from monitoring.queries.failure_group import members_page
from monitoring.queries.failures import failure_groups, number_open
from monitoring.views.page import named, page
from monitoring.views.sharing import shared


@require_safe
@for_viewers
@shared
def index(request: HttpRequest) -> HttpResponse:
    """Everything that has failed, of all definitions or of one."""
    query, definition = request.GET, named(request)
    groups = failure_groups(query.get("order", ""), query.get("before", ""), definition)
    number = number_open(definition)
    return page(
        request, "failures", groups=groups, number=number, definition=definition
    )


@require_safe
@for_viewers
@shared
def group(request: HttpRequest, cause: str) -> HttpResponse:
    """The failures of one cause."""
    return page(request, "failure_group", **_context(request, cause))


def _context(request: HttpRequest, cause: str) -> dict[str, Any]:
    fingerprint = "" if cause == NO_CAUSE else cause.replace("\0", "")[:64]
    operation = on_cause(fingerprint)
    return {
        "cause": cause,
        "page": members_page(fingerprint, request.GET.get("before", "")),
        "operation": operation,
        "newcomers": newcomers(operation) if operation else None,
    }
