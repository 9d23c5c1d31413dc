"""Failures: the list of groups, and the page of one group."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from monitoring.base.access import action_for, cause_scope, list_scope, page_for
from monitoring.base.requests import is_from_script, is_live
from monitoring.base.row_addresses import NO_CAUSE
from monitoring.forms.action_forms import ActionAnswer, ActionForm
from monitoring.forms.buttons import Button, dialog_of
from monitoring.lists.bulk.bulk import later_failures, newest_operation
from monitoring.lists.failures.causes import cause_now, current_cause
from monitoring.lists.failures.failure_group import MembersPage, members_page
from monitoring.lists.failures.failure_marks import handling_of
from monitoring.lists.failures.failures import (
    count_open_failures,
    failure_groups,
    handled_groups,
)
from monitoring.lists.failures.resolved_failures import resolved_page
from monitoring.live.sharing import share_answer
from monitoring.views.actions.operations import (
    answer_of,
    entry_or_404,
    finish,
    live_answer,
)
from monitoring.views.page import definition_in, page
from orchestrator.engine.operations import assign_failures, mark_handled, unmark_handled
from orchestrator.models import FailureMark

CONTROLS = {
    control.name: control for control in (mark_handled, unmark_handled, assign_failures)
}


@page_for(of=list_scope)
@share_answer
def index(request: HttpRequest) -> HttpResponse:
    """The open failures of all definitions or of one; with `show=` the handled or the resolved ones."""
    query, definition = request.GET, definition_in(request)
    show = query.get("show", "")
    context: dict[str, Any] = {"show": show, "definition": definition}
    if show == "handled":
        return page(request, "failures", handled=handled_groups(definition), **context)
    if show == "resolved":
        found = resolved_page(query.get("before", ""), definition)
        return page(request, "failures", resolved=found, **context)
    context |= {"show": "", "number": count_open_failures(definition)}
    groups = failure_groups(query.get("order", ""), query.get("before", ""), definition)
    return page(request, "failures", groups=groups, **context)


@page_for(of=cause_scope)
@share_answer
def group(request: HttpRequest, cause: str) -> HttpResponse:
    """The failures of one cause."""
    return page(request, "failure_group", **_context(request, cause))


@action_for(of=cause_scope)
def act(request: HttpRequest, cause: str, name: str) -> HttpResponse:
    """Mark the failures of one cause as handled, unmark them, or assign them."""
    answer = perform_on_failures(request, name, cause)
    if is_from_script(request):
        return live_answer(request, "failure_group", answer, _context(request, cause))
    return finish(request, answer, redirect("monitoring:failure-group", cause=cause))


def perform_on_failures(request: HttpRequest, name: str, cause: str) -> ActionAnswer:
    """Carry out an action on the failures of one cause, and return the answer.

    Raises:
        Http404: there is no such action.
    """
    control = entry_or_404(CONTROLS, name)
    form = ActionForm(control, request.POST)
    fingerprint = fingerprint_of(cause)
    return answer_of(
        form, lambda: control(fingerprint, *form.given(), request=form.asked(request))
    )


def fingerprint_of(cause: str) -> str:
    """Return the fingerprint of a cause in an address; the one of now for an address of an earlier release."""
    return current_cause("" if cause == NO_CAUSE else cause.replace("\0", "")[:64])


def _context(request: HttpRequest, cause: str) -> dict[str, Any]:
    fingerprint = fingerprint_of(cause)
    operation = newest_operation("failures", {"cause": fingerprint})
    found = members_page(fingerprint, request.GET.get("before", ""))
    handling = handling_of([fingerprint]).get(fingerprint)
    mark = handling.mark if handling else FailureMark(fingerprint=fingerprint)
    return {
        "cause": cause,
        "cause_now": cause_now(fingerprint),
        "page": found,
        "operation": operation,
        "newcomers": later_failures(operation) if operation else None,
        "handling": handling,
        "buttons": _buttons(request, cause, found, mark),
        "dialogs": []
        if is_live(request)
        else [dialog_of(one, request.user) for one in CONTROLS.values()],
    }


def _buttons(
    request: HttpRequest, cause: str, found: MembersPage, mark: FailureMark
) -> list[Button]:
    """Return the buttons of a group; none without open failures."""
    if found.group is None:
        return []
    return [
        Button(
            control,
            f"{name}-button",
            reverse("monitoring:act-on-failures", args=[cause, name]),
            control.refusal(request.user, mark, found.group.newest),
            str(control.label),
            given=found.group.newest.pk,
            revision=mark.revision,
        )
        for name, control in CONTROLS.items()
        if name != unmark_handled.name or mark.handled_at is not None
    ]
