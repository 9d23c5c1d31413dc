"""The buttons. Each makes one request to the engine, and shows its answer with the page as it is now."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_POST

from monitoring.access import by_script, for_event_viewers, for_viewers
from monitoring.actions import ActionAnswer, ActionForm
from monitoring.queries.decisions import decision_page
from monitoring.spoken import spoken
from monitoring.views.events import events_context
from monitoring.views.instances import instance_context
from monitoring.views.page import live_parts, named
from orchestrator.engine.operations import (
    Operation,
    ProcessOperation,
    on_events,
    on_processes,
)
from orchestrator.exceptions import OperationRefused, PermissionMissing
from orchestrator.models import (
    Definition,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
    StepRun,
)

AnyOperation = TypeVar("AnyOperation", bound=Operation)


@require_POST
@for_viewers
def act(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    """Does something to a process."""
    operation = _known(on_processes(), name)
    if operation.on_step:
        raise Http404
    return _on_instance(request, operation, pk)


@require_POST
@for_viewers
def act_on_step(request: HttpRequest, pk: UUID, run: int, name: str) -> HttpResponse:
    """Does something to one visit of a step."""
    operation = _known(on_processes(), name)
    if not operation.on_step:
        raise Http404
    get_object_or_404(StepRun, pk=run, instance=pk)
    return _on_instance(request, operation, pk, run)


@require_POST
@for_event_viewers
def act_on_event(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Does something to an event that nothing took."""
    operation = _known(on_events(), name)
    get_object_or_404(InboxEvent, pk=pk)
    answer = _carry_out(request, operation, pk)
    if by_script(request):
        return shown(request, "events", answer, events_context(request))
    return plain(request, answer, redirect("monitoring:events"))


def _known(operations: Mapping[str, AnyOperation], name: str) -> AnyOperation:
    try:
        return operations[name]
    except KeyError:
        raise Http404 from None


def _on_instance(
    request: HttpRequest, operation: ProcessOperation, pk: UUID, *run: int
) -> HttpResponse:
    get_object_or_404(ProcessInstance.objects.only("pk"), pk=pk)
    answer = _carry_out(request, operation, pk, *run)
    if not by_script(request):
        return plain(request, answer, redirect("monitoring:instance", pk=pk))
    if _asked_from(request, "monitoring:decisions"):
        return shown(
            request,
            "decisions",
            answer,
            {"page": decision_page(definition=named(request))},
        )
    return shown(request, "instance", answer, instance_context(request, pk))


def _carry_out(request: HttpRequest, operation: Any, *target: Any) -> ActionAnswer:
    form = ActionForm(operation, request.POST)
    if not form.is_valid():
        return ActionAnswer(next(iter(form.errors.values()))[0], 400)
    try:
        action = operation(*target, *form.given(), request=form.asked(request))
    except OperationRefused as refused:
        status = 403 if isinstance(refused, PermissionMissing) else 409
        return ActionAnswer(_told(operation, target[0], str(refused)), status)
    if action.result != OperatorAction.Result.DONE:
        return ActionAnswer(_told(operation, target[0], action.detail), 409)
    started = (action.after or {}).get("restarted_as", "")
    place = reverse("monitoring:instance", args=[started]) if started else ""
    return ActionAnswer(action.detail or operation.done, leads_to=place)


def _told(operation: Operation, target: Any, refusal: str) -> str:
    """A refusal in the words of whoever pressed."""
    rows = Definition.objects.defer("graph")
    if isinstance(operation, ProcessOperation):
        rows = rows.filter(processinstance=target)
    else:
        rows = rows.filter(processinstance__events=target)
    return spoken(refusal, rows.first())


def _asked_from(request: HttpRequest, name: str) -> bool:
    """Whether the form stands on that page."""
    address = request.headers.get("HX-Current-URL", "")
    return urlsplit(address).path == reverse(name)


def shown(
    request: HttpRequest, name: str, answer: ActionAnswer, context: dict[str, Any]
) -> HttpResponse:
    """The answer to an open page, with the page as it is now."""
    said = render_to_string("monitoring/parts/answer.html", {"answer": answer}, request)
    text = said + live_parts(request, name, context)
    return HttpResponse(text, status=answer.status)


def plain(
    request: HttpRequest, answer: ActionAnswer, done: HttpResponse
) -> HttpResponse:
    """The same for a browser that posts the form by itself."""
    if answer.done:
        # A project may do without messages; the page shows what was done anyway.
        messages.success(request, str(answer.text), fail_silently=True)
        return redirect(answer.leads_to) if answer.leads_to else done
    return render(
        request, "monitoring/refused.html", {"answer": answer}, status=answer.status
    )
