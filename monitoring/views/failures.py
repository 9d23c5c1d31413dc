"""What has failed: groups of one cause, one group, and a retry of those of its processes that are shown."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from monitoring.access import by_script, for_viewers
from monitoring.buttons import Button, Dialog
from monitoring.many import ManyForm, carry_out_each
from monitoring.places import NO_CAUSE
from monitoring.queries.failure_group import MembersPage, members_page
from monitoring.queries.failures import failure_groups, number_open
from monitoring.views.operations import plain, shown
from monitoring.views.page import named, page
from monitoring.views.sharing import shared
from orchestrator.engine.operations import OPERATIONS

RETRY = "retry"


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


@require_POST
@for_viewers
def retry(request: HttpRequest, cause: str) -> HttpResponse:
    """Tries those processes again that the page showed."""
    operation = OPERATIONS[RETRY]
    answer = carry_out_each(request, operation, ManyForm(operation, request.POST))
    if by_script(request):
        return shown(request, "failure_group", answer, _context(request, cause))
    return plain(request, answer, redirect("monitoring:failure-group", cause=cause))


def _context(request: HttpRequest, cause: str) -> dict[str, Any]:
    fingerprint = "" if cause == NO_CAUSE else cause.replace("\0", "")[:64]
    members = members_page(fingerprint, request.GET.get("before", ""))
    return {
        "cause": cause,
        "page": members,
        "button": _button(request, cause, members),
        "dialogs": [Dialog(OPERATIONS[RETRY], many=True)],
    }


def _button(request: HttpRequest, cause: str, members: MembersPage) -> Button | None:
    """What tries again those that are shown, frozen as they are now."""
    if not members.processes:
        return None
    operation, number = OPERATIONS[RETRY], len(members.processes)
    return Button(
        operation,
        "retry-shown",
        reverse("monitoring:retry-failures", args=[cause]),
        operation.forbidden(request.user),
        ngettext("%(number)s process", "%(number)s processes", number)
        % {"number": number},
        given=members.chosen,
        tone="primary",
        number=len(members.processes),
    )
