"""Saved views of the list of processes: opened from a link, saved, renamed, deleted."""

from uuid import uuid4

from django import forms
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect

from monitoring.base.access import (
    action_for,
    page_for,
    reader_scope,
    visible_definitions,
)
from monitoring.forms.action_forms import ActionAnswer, ActionForm
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.saved_views import place_of_view, views_for
from monitoring.views.actions.operations import answer_of, finish
from monitoring.views.page import page
from orchestrator.engine.operations import delete_view, rename_view, save_view
from orchestrator.exceptions import OperationRefused
from orchestrator.models import SavedView

CONTROLS = {control.name: control for control in (rename_view, delete_view)}


class NameForm(ActionForm):
    """The name of a view, and for a new one its filters and whether it is the team's."""

    name = forms.CharField(max_length=200, required=False)
    query = forms.CharField(max_length=5_000, required=False)
    team = forms.BooleanField(required=False)


@page_for(of=reader_scope)
def index(request: HttpRequest) -> HttpResponse:
    """All views that the reader may open, with buttons to rename and delete them."""
    return page(
        request,
        "saved_views",
        views=[(view, uuid4()) for view in _visible_views(request)],
        why=save_view.forbidden(request.user),
    )


@page_for(of=reader_scope)
def open_view(request: HttpRequest, pk: int) -> HttpResponse:
    """Redirect to the list of the view."""
    if pk >= 2**63:
        raise Http404
    return redirect(place_of_view(get_object_or_404(_visible_views(request), pk=pk)))


@action_for(of=reader_scope)
def save(request: HttpRequest) -> HttpResponse:
    """Save the list of an address."""
    return finish(request, save_from_form(request), redirect("monitoring:saved-views"))


@action_for(of=reader_scope)
def act(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Rename or delete a view."""
    answer = perform_on_view(request, name, pk)
    return finish(request, answer, redirect("monitoring:saved-views"))


def _visible_views(request: HttpRequest) -> QuerySet[SavedView]:
    """Return the views whose lists the reader may see."""
    return views_for(request.user, visible_definitions(request))


def save_from_form(request: HttpRequest) -> ActionAnswer:
    """Save the view of a form, and return the answer."""
    seen = visible_definitions(request)

    form = NameForm(save_view, request.POST)

    def done() -> SavedView:
        said = form.cleaned_data
        filters = Filters.from_query(QueryDict(said["query"]), request.user).by_name()
        if filters.mistake:
            raise OperationRefused(filters.mistake)
        if seen is not None and filters.definition not in seen:
            raise PermissionDenied
        asked = form.asked(request)
        about = filters.parameters()
        return save_view(said["name"], about, said["team"], request=asked)

    return answer_of(form, done)


def perform_on_view(request: HttpRequest, name: str, pk: int) -> ActionAnswer:
    """Carry out an action on a view, and return the answer.

    Raises:
        Http404: there is no such action, or the view is of a list that its reader may not see.
    """
    if name not in CONTROLS or pk >= 2**63:
        raise Http404
    if visible_definitions(request) is not None:
        get_object_or_404(_visible_views(request), pk=pk)

    form = NameForm(CONTROLS[name], request.POST)

    def done() -> SavedView:
        asked = form.asked(request)
        if name == rename_view.name:
            return rename_view(pk, form.cleaned_data["name"], request=asked)
        return delete_view(pk, request=asked)

    return answer_of(form, done)
