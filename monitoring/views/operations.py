"""The actions of buttons. Each makes one request to the engine, and answers with the page as it is now."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse

from monitoring.access import EVENTS, action_for, of_process, shows_only
from monitoring.actions import ActionAnswer, ActionForm
from monitoring.given import with_stored_secrets
from monitoring.open_pages import by_script
from monitoring.queries.decisions import decision_page
from monitoring.queries.texts import translated
from monitoring.views.events import events_context
from monitoring.views.instances import instance_context
from monitoring.views.page import live_parts, named
from monitoring.views.stalled import stalled_context
from monitoring.views.waits import waits_context
from orchestrator.engine.operations import (
    Operation,
    ProcessOperation,
    on_events,
    on_processes,
)
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    Definition,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
    StepRun,
)

Known = TypeVar("Known")

LISTS: dict[str, Callable[[HttpRequest], dict[str, Any]]] = {
    "decisions": lambda request: {"page": decision_page(definition=named(request))},
    "stalled": stalled_context,
    "waits": waits_context,
}
"""The lists whose rows have buttons of processes, each with what its page needs."""


@action_for(of=of_process)
def act(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    """Does something to a process."""
    return acted(request, pk, name)


def acted(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    """The answer of `act`, for callers that have checked access."""
    return _page_of_instance(request, pk, pressed(request, name, pk))


@action_for(of=of_process)
def act_on_step(request: HttpRequest, pk: UUID, run: int, name: str) -> HttpResponse:
    """Does something to one visit of a step."""
    return _page_of_instance(request, pk, pressed(request, name, pk, run))


@action_for(EVENTS)
def act_on_event(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Does something to an event that nothing took."""
    answer = pressed_on_event(request, name, pk)
    if by_script(request):
        return shown(request, "events", answer, events_context(request))
    return plain(request, answer, redirect("monitoring:events"))


def known(those: Mapping[str, Known], name: str) -> Known:
    """The entry of a name; 404 without one."""
    if name not in those:
        raise Http404
    return those[name]


def pressed(
    request: HttpRequest, name: str, pk: UUID, run: int | None = None
) -> ActionAnswer:
    """Carries out an action on a process, or on one of its visits.

    Raises:
        Http404: there is no such action or process, or the action is not for such a target.
    """
    operation = known(on_processes(), name)
    if operation.on_step != (run is not None):
        raise Http404
    if run is not None:
        get_object_or_404(StepRun, pk=run, instance=pk)
    get_object_or_404(ProcessInstance.objects.only("pk"), pk=pk)
    return _carry_out(request, operation, pk, *([run] if run is not None else []))


def pressed_on_event(request: HttpRequest, name: str, pk: int) -> ActionAnswer:
    """Carries out an action on an event.

    Raises:
        Http404: there is no such action or event.
    """
    operation = known(on_events(), name)
    get_object_or_404(InboxEvent, pk=pk)
    return _carry_out(request, operation, pk)


def _page_of_instance(
    request: HttpRequest, pk: UUID, answer: ActionAnswer
) -> HttpResponse:
    if not by_script(request):
        return plain(request, answer, redirect("monitoring:instance", pk=pk))
    for name, context in LISTS.items() if shows_only(request, named(request)) else ():
        if _asked_from(request, f"monitoring:{name}"):
            return shown(request, name, answer, context(request))
    return shown(request, "instance", answer, instance_context(request, pk))


def _carry_out(request: HttpRequest, operation: Any, *target: Any) -> ActionAnswer:
    form = ActionForm(operation, request.POST)

    def carry_out() -> Any:
        given, why = with_stored_secrets(
            operation, target[0], form.given(), request.user
        )
        OperationRefused.raise_for(why)
        return operation(*target, *given, request=form.asked(request))

    def then(action: OperatorAction) -> dict[str, Any]:
        started = (action.after or {}).get("restarted_as", "")
        place = reverse("monitoring:instance", args=[started]) if started else ""
        return {"text": translated(action.said) or operation.done, "leads_to": place}

    told = partial(_told, operation, target[0])
    return answer_of(form, carry_out, then, told)


def answer_of(
    form: ActionForm,
    carry_out: Callable[[], Any],
    then: Callable[[Any], dict[str, Any]] = lambda done: {},
    told: Callable[[str], str] = translated,
) -> ActionAnswer:
    """Carries out the action of a form, and returns the answer, which may be a refusal.

    Args:
        form: as it was sent.
        carry_out: runs the operation when the form is valid. A repeated press returns the audit row of the first.
        then: further fields of the answer, made from what `carry_out` returned.
        told: translates a refusal for the reader.
    """
    if not form.is_valid():
        return ActionAnswer.invalid(form)
    try:
        done = carry_out()
    except OperationRefused as refused:
        return ActionAnswer.refused(refused, told(refused.told))
    return ActionAnswer(**{"text": form.operation.done, **then(done)})


def _told(operation: Operation, target: Any, refusal: str) -> str:
    """A refusal in the language of the user."""
    rows = Definition.objects.defer("graph")
    if isinstance(operation, ProcessOperation):
        rows = rows.filter(processinstance=target)
    else:
        rows = rows.filter(processinstance__events=target)
    return translated(refusal, rows.first())


def _asked_from(request: HttpRequest, name: str) -> bool:
    """Whether the form stands on that page."""
    try:
        address = urlsplit(request.headers.get("HX-Current-URL", ""))
    except ValueError:  # it is none
        return False
    return address.path == reverse(name)


def shown(
    request: HttpRequest, name: str, answer: ActionAnswer, context: dict[str, Any]
) -> HttpResponse:
    """The answer to an open page, with its live parts as they are now."""
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
