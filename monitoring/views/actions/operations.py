"""The actions of buttons. Each requests one operation of the engine, and answers with the page as it is now."""

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

from monitoring.base.access import EVENTS, action_for, process_scope, shows_only
from monitoring.base.requests import is_from_script
from monitoring.base.translation import translate
from monitoring.forms.action_forms import ActionAnswer, ActionForm
from monitoring.lists.waits.decisions import decision_page
from monitoring.views.actions.stored_secrets import restore_stored_secrets
from monitoring.views.instances import instance_context
from monitoring.views.lists.events import events_context
from monitoring.views.lists.stalled_processes import stalled_context
from monitoring.views.lists.waits import waits_context
from monitoring.views.page import definition_in, live_parts
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

NamedEntry = TypeVar("NamedEntry")

LISTS: dict[str, Callable[[HttpRequest], dict[str, Any]]] = {
    "decisions": lambda request: {
        "page": decision_page(definition=definition_in(request))
    },
    "stalled": stalled_context,
    "waits": waits_context,
}
"""The lists whose rows have buttons of processes, each with the context of its page."""


@action_for(of=process_scope)
def act(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    """Act on a process."""
    return act_unchecked(request, pk, name)


def act_unchecked(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    """Return the answer of `act`, for callers that have checked access."""
    return _page_of_instance(request, pk, perform_on_process(request, name, pk))


@action_for(of=process_scope)
def act_on_step(request: HttpRequest, pk: UUID, run: int, name: str) -> HttpResponse:
    """Act on one visit of a step."""
    return _page_of_instance(request, pk, perform_on_process(request, name, pk, run))


@action_for(EVENTS)
def act_on_event(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Act on an event that no process took."""
    answer = perform_on_event(request, name, pk)
    if is_from_script(request):
        return live_answer(request, "events", answer, events_context(request))
    return finish(request, answer, redirect("monitoring:events"))


def entry_or_404(those: Mapping[str, NamedEntry], name: str) -> NamedEntry:
    """Return the entry of a name.

    Raises:
        Http404: there is none.
    """
    if name not in those:
        raise Http404
    return those[name]


def perform_on_process(
    request: HttpRequest, name: str, pk: UUID, run: int | None = None
) -> ActionAnswer:
    """Carry out an action on a process, or on one of its visits.

    Raises:
        Http404: there is no such action or process, or the action is not for such a target.
    """
    operation = entry_or_404(on_processes(), name)
    if operation.on_step != (run is not None):
        raise Http404
    if run is not None:
        get_object_or_404(StepRun, pk=run, instance=pk)
    get_object_or_404(ProcessInstance.objects.only("pk"), pk=pk)
    return _carry_out(request, operation, pk, *([run] if run is not None else []))


def perform_on_event(request: HttpRequest, name: str, pk: int) -> ActionAnswer:
    """Carry out an action on an event.

    Raises:
        Http404: there is no such action or event.
    """
    operation = entry_or_404(on_events(), name)
    get_object_or_404(InboxEvent, pk=pk)
    return _carry_out(request, operation, pk)


def _page_of_instance(
    request: HttpRequest, pk: UUID, answer: ActionAnswer
) -> HttpResponse:
    if not is_from_script(request):
        return finish(request, answer, redirect("monitoring:instance", pk=pk))
    listed = shows_only(request, definition_in(request))
    for name, context in LISTS.items() if listed else ():
        if _is_from_page(request, f"monitoring:{name}"):
            return live_answer(request, name, answer, context(request))
    return live_answer(request, "instance", answer, instance_context(request, pk))


def _carry_out(request: HttpRequest, operation: Any, *target: Any) -> ActionAnswer:
    form = ActionForm(operation, request.POST)

    def carry_out() -> Any:
        given, why = restore_stored_secrets(
            operation, target[0], form.given(), request.user
        )
        OperationRefused.raise_for(why)
        return operation(*target, *given, request=form.asked(request))

    def then(action: OperatorAction) -> dict[str, Any]:
        started = (action.after or {}).get("restarted_as", "")
        place = reverse("monitoring:instance", args=[started]) if started else ""
        return {"text": translate(action.said) or operation.done, "leads_to": place}

    told = partial(_refusal_text, operation, target[0])
    return answer_of(form, carry_out, then, told)


def answer_of(
    form: ActionForm,
    carry_out: Callable[[], Any],
    then: Callable[[Any], dict[str, Any]] = lambda done: {},
    told: Callable[[str], str] = translate,
) -> ActionAnswer:
    """Carry out the action of a form, and return the answer, which may be a refusal.

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


def _refusal_text(operation: Operation, target: Any, refusal: str) -> str:
    """Return a refusal in the language of the user."""
    rows = Definition.objects.defer("graph")
    if isinstance(operation, ProcessOperation):
        rows = rows.filter(processinstance=target)
    else:
        rows = rows.filter(processinstance__events=target)
    return translate(refusal, rows.first())


def _is_from_page(request: HttpRequest, name: str) -> bool:
    """Whether the form stands on that page."""
    try:
        address = urlsplit(request.headers.get("HX-Current-URL", ""))
    except ValueError:  # it is none
        return False
    return address.path == reverse(name)


def live_answer(
    request: HttpRequest, name: str, answer: ActionAnswer, context: dict[str, Any]
) -> HttpResponse:
    """Answer an open page, with its live parts as they are now."""
    said = render_to_string("monitoring/parts/answer.html", {"answer": answer}, request)
    text = said + live_parts(request, name, context)
    return HttpResponse(text, status=answer.status)


def finish(
    request: HttpRequest, answer: ActionAnswer, done: HttpResponse
) -> HttpResponse:
    """Answer a browser without scripts: redirect after the action, or show its refusal."""
    if answer.done:
        # A project may lack messages; the page shows the effect anyway.
        messages.success(request, str(answer.text), fail_silently=True)
        return redirect(answer.leads_to) if answer.leads_to else done
    return render(
        request, "monitoring/refused.html", {"answer": answer}, status=answer.status
    )
