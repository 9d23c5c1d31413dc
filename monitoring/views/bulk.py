"""Actions on many: the form with its preview, the page of an operation, and the list of all."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from monitoring.base.access import (
    EVENTS,
    action_for,
    bulk_scope,
    form_for,
    page_for,
    selection_scope,
)
from monitoring.base.masking import sees_data, visible_selection
from monitoring.base.requests import is_from_script
from monitoring.base.row_addresses import NO_CAUSE
from monitoring.forms.action_forms import ActionAnswer, ActionForm
from monitoring.forms.bulk_form import BulkForm
from monitoring.forms.buttons import Button, Dialog
from monitoring.lists.bulk import bulk as queries
from monitoring.lists.events.event_search import EventFilters
from monitoring.lists.processes.filters import Filters
from monitoring.queries.lists import Chip, Search
from monitoring.views.actions.operations import (
    answer_of,
    entry_or_404,
    finish,
    live_answer,
)
from monitoring.views.failures import fingerprint_of
from monitoring.views.page import page
from orchestrator.engine.operations import (
    SELECTIONS,
    Operation,
    cancel_bulk,
    forbidden_in_bulk,
    in_bulk,
    moment_shown,
    pause_bulk,
    repeat_bulk,
    resume_bulk,
    start_bulk,
)
from orchestrator.models import BulkOperation, OperatorAction

FIRST = {"processes": "retry", "failures": "retry", "events": "redeliver"}
"""The default action by kind of selection."""

SEARCHES: dict[str, type[Search]] = {"processes": Filters, "events": EventFilters}
"""The filters of a selection by its kind."""

CONTROLS = {
    control.name: control
    for control in (pause_bulk, resume_bulk, repeat_bulk, cancel_bulk)
}


@page_for()
def index(request: HttpRequest) -> HttpResponse:
    """All operations, newest first; with `going_on=1` those that have not ended."""
    going_on = request.GET.get("going_on") == "1"
    found = queries.operations_page(request.GET.get("before", ""), going_on=going_on)
    return page(request, "operations", page=found, going_on=going_on)


@form_for(of=selection_scope)
def begin(request: HttpRequest) -> HttpResponse:
    """Show the preview of an operation; a post begins it."""
    selection, about = read_selection(request)
    operation = action_of(request, selection)
    given = request.POST if request.method == "POST" else None
    form = BulkForm(operation, given, user=request.user)
    if given is None:
        return _form_page(request, operation, selection, about, form)
    done = begin_from_form(request, form, selection, about)
    if done.done:
        return redirect(done.leads_to)
    said, status = str(done.text), done.status
    return _form_page(request, operation, selection, about, form, said, status)


def begin_from_form(
    request: HttpRequest, form: BulkForm, selection: str, about: Mapping[str, Any]
) -> ActionAnswer:
    """Begin the operation of a form, and return the answer."""
    if not form.is_valid():
        return ActionAnswer.invalid(form, form.first_mistake)

    def started() -> BulkOperation:
        wanted = form.wanted(selection, about)
        return start_bulk(wanted, request=form.asked(request))

    return answer_of(
        form, started, lambda done: {"text": start_bulk.done, **_leads_to(done)}
    )


def _form_page(
    request: HttpRequest,
    operation: Operation,
    selection: str,
    about: Mapping[str, Any],
    form: BulkForm,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    narrows = SELECTIONS[selection].narrows(about)
    filters = Filters.from_stored(about) if selection == "processes" else None
    at = moment_shown()
    found = (
        queries.bulk_preview(operation, selection, about, at, request.user)
        if narrows
        else None
    )
    return page(
        request,
        "begin_operation",
        status=status,
        operation=operation,
        others=[
            (one, _address_for(request, one.name))
            for one in in_bulk().values()
            if one.model is SELECTIONS[selection].model
        ],
        selection=selection,
        about=about,
        filters=filters,
        chips=_chips(selection, about),
        found=found,
        form=form,
        refusal=refusal or (filters.mistake if filters else ""),
        why=forbidden_in_bulk(operation, request.user)
        or (found.forbidden if found else ""),
        running=queries.newest_operation(selection, about, going_on=True),
    )


def read_selection(request: HttpRequest) -> tuple[str, dict[str, str]]:
    """Return the selection of an address: the failures of a cause, or events or processes of a list.

    Raises:
        Http404: the reader may not see events; or the address has an unknown condition, without which more would match.
    """
    given = request.GET
    if "cause" in given:
        _refuse_all_but(given, "cause")
        return "failures", {"cause": fingerprint_of(given["cause"])}
    if given.get("of") == "events" or "verdict" in given:
        if not request.user.has_perm(EVENTS):
            raise Http404
        _refuse_all_but(given, "of", *EventFilters.names().values())
        return "events", EventFilters.from_query(given).parameters()
    _refuse_all_but(given, *Filters.names())
    filters = Filters.from_query(given, request.user).by_name()
    if filters.where and not sees_data(request.user):
        raise PermissionDenied  # counts would reveal data
    return "processes", filters.stored()


def _chips(selection: str, about: Mapping[str, Any]) -> list[Chip]:
    """Return the filters of a selection of processes or events; those of another version as stored.

    Filters that the reader may not see have no value.
    """
    search = SEARCHES.get(selection)
    if search is None:
        return []
    told = {name: value for name, value in about.items() if value is not None}
    labels = {**EventFilters.LABELS, "where": Filters.LABELS["where"]}
    untold = [
        Chip(labels.get(name, name), _("not yours to see"))
        for name in about
        if name not in told
    ]
    others = sorted(told.keys() - search.names().values())
    known = search.from_query(told).chips()
    return [*known, *(Chip(name, told[name]) for name in others), *untold]


def _refuse_all_but(given: QueryDict, *names: str) -> None:
    """Refuse an address with an unknown condition.

    Raises:
        Http404: there is one.
    """
    known = {*names, "action", "since"}
    if any(value for name, value in given.items() if name not in known):
        raise Http404


def action_of(request: HttpRequest, selection: str) -> Operation:
    """Return the action of the address.

    Raises:
        Http404: it is no action on many, or not on this kind of rows.
    """
    found = in_bulk().get(request.GET.get("action", FIRST[selection]))
    if found is None or found.model is not SELECTIONS[selection].model:
        raise Http404
    return found


def _address_for(request: HttpRequest, action: str) -> str:
    """Return the address of the same page for another action."""
    given = request.GET.copy()
    given["action"] = action
    return f"?{given.urlencode()}"


@page_for(of=bulk_scope)
def detail(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One operation, live; `?verdict=` filters its items, `?after=` shows the next page."""
    return page(request, "operation", **_context(request, pk))


@action_for(of=bulk_scope)
def act(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    """Pause, resume or cancel an operation, or repeat it for its failed items."""
    answer = perform_on_bulk(request, name, pk)
    if is_from_script(request) and not answer.leads_to:
        return live_answer(request, "operation", answer, _context(request, pk))
    if is_from_script(request):
        return HttpResponse(headers={"HX-Redirect": answer.leads_to})
    return finish(request, answer, redirect("monitoring:bulk-operation", pk=pk))


def perform_on_bulk(request: HttpRequest, name: str, pk: UUID) -> ActionAnswer:
    """Carry out an action on an operation, and return the answer.

    Raises:
        Http404: there is no such action or operation.
    """
    control: Any = entry_or_404(CONTROLS, name)
    get_object_or_404(BulkOperation.objects.only("pk"), pk=pk)
    form = ActionForm(control, request.POST)
    return answer_of(form, lambda: control(pk, request=form.asked(request)), _leads_to)


def _leads_to(done: BulkOperation | OperatorAction) -> dict[str, Any]:
    """Return the address of an operation that has begun."""
    if not isinstance(done, BulkOperation):
        return {}
    return {"leads_to": reverse("monitoring:bulk-operation", args=[done.pk])}


def _context(request: HttpRequest, pk: UUID) -> dict[str, Any]:
    operation = get_object_or_404(
        BulkOperation.objects.select_related("again_of"), pk=pk
    )
    found = queries.operation_page(
        operation, request.GET.get("verdict", ""), request.GET.get("after", "")
    )
    about = visible_selection(operation, request.user)
    return {
        "page": found,
        "operation": operation,
        "action": in_bulk().get(operation.action),
        "chips": _chips(operation.selection, about),
        "newcomers": queries.later_failures(operation),
        "same": current_list_address(operation.selection, about),
        "again": operation.again.order_by("pk").first(),
        "buttons": _buttons(request, operation),
        "dialogs": [Dialog(control) for control in CONTROLS.values()],
    }


def _buttons(request: HttpRequest, operation: BulkOperation) -> list[Button]:
    return [
        Button(
            control,
            f"{name}-button",
            reverse("monitoring:act-on-bulk", args=[operation.pk, name]),
            control.refusal(request.user, operation),
            str(control.label),
            revision=operation.revision,
        )
        for name, control in CONTROLS.items()
        if name != "repeat_bulk" or operation.failed
    ]


def current_list_address(selection: str, about: Mapping[str, Any]) -> str:
    """Return the address of an operation's list as it is now; "" if the reader may not see all of its filters."""
    if None in about.values():
        return ""
    if selection == "processes":
        return f"{reverse('monitoring:instances')}?{urlencode(about)}"
    if selection == "failures":
        return reverse("monitoring:failure-group", args=[about["cause"] or NO_CAUSE])
    if selection == "events":
        return f"{reverse('monitoring:events')}?{urlencode(about)}"
    return ""
