"""The buttons. Each makes one request to the engine, and shows its answer with the page as it is now."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from monitoring.access import for_event_viewers, for_viewers
from monitoring.actions import (
    ActionForm,
    Answer,
    ChoiceForm,
    JsonForm,
    RevisionForm,
    StepForm,
)
from monitoring.queries.decisions import decision_page
from monitoring.queries.events import event_page
from monitoring.views.instances import instance_context
from monitoring.views.page import live_parts
from orchestrator.engine import operations
from orchestrator.exceptions import OperationRefused, PermissionMissing
from orchestrator.models import InboxEvent, OperatorAction, ProcessInstance, StepRun

Act = Callable[..., OperatorAction]


@require_POST
@for_viewers
def retry(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Tries again what failed."""
    return _on_instance(request, pk, operations.retry, _("Trying again."))


@require_POST
@for_viewers
def escalate(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Raises the escalation level."""
    return _on_instance(request, pk, operations.escalate, _("Escalated."))


@require_POST
@for_viewers
def cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Ends a process, and undoes what it has done."""
    return _on_instance(request, pk, operations.cancel, _("Cancelled."))


@require_POST
@for_viewers
def redo(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Runs one step again."""
    return _on_instance(
        request, pk, operations.redo, _("Running it again."), StepForm(request.POST)
    )


@require_POST
@for_viewers
def resume(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Goes back to a checkpoint, and on from there."""
    form = RevisionForm(request.POST)
    return _on_instance(request, pk, operations.resume, _("Resumed."), form)


@require_POST
@for_viewers
def restart(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Starts a new process with edited input."""
    form = JsonForm(request.POST)
    return _on_instance(request, pk, operations.restart, _("Started as new."), form)


@require_POST
@for_viewers
def skip(request: HttpRequest, pk: UUID, run: int) -> HttpResponse:
    """Lets the process go on with a result that a person gives."""
    return _on_run(
        request, pk, run, operations.skip, _("Skipped."), JsonForm(request.POST)
    )


@require_POST
@for_viewers
def decide(request: HttpRequest, pk: UUID, run: int) -> HttpResponse:
    """Makes a decision that a workflow asks for."""
    return _on_run(
        request, pk, run, operations.decide, _("Decided."), ChoiceForm(request.POST)
    )


@require_POST
@for_event_viewers
def redeliver(request: HttpRequest, pk: int) -> HttpResponse:
    """Offers an event to its process again."""
    return _on_event(request, pk, operations.redeliver, _("Offered again."))


@require_POST
@for_event_viewers
def discard(request: HttpRequest, pk: int) -> HttpResponse:
    """Puts an event aside for good."""
    return _on_event(request, pk, operations.discard, _("Discarded."))


def _on_run(
    request: HttpRequest, pk: UUID, run: int, act: Act, done: str, form: ActionForm
) -> HttpResponse:
    get_object_or_404(StepRun, pk=run, instance=pk)

    def on_it(instance: UUID, *more: Any, request: Any) -> OperatorAction:
        return act(instance, run, *more, request=request)

    return _on_instance(request, pk, on_it, done, form)


def _on_instance(
    request: HttpRequest, pk: UUID, act: Act, done: str, form: ActionForm | None = None
) -> HttpResponse:
    get_object_or_404(ProcessInstance.objects.only("pk"), pk=pk)
    answer = _carry_out(request, act, pk, done, form or ActionForm(request.POST))
    if not request.htmx:  # type: ignore[attr-defined]  # set by its middleware
        return _plain(request, answer, redirect("monitoring:instance", pk=pk))
    if _asked_from(request, "monitoring:decisions"):
        context = {"page": decision_page(), "answer": answer}
        return _shown(request, "decisions", context)
    return _shown(
        request, "instance", {**instance_context(request, pk), "answer": answer}
    )


def _on_event(request: HttpRequest, pk: int, act: Act, done: str) -> HttpResponse:
    event = get_object_or_404(InboxEvent, pk=pk)
    answer = _carry_out(request, act, event.pk, done, ActionForm(request.POST))
    if request.htmx:  # type: ignore[attr-defined]  # set by its middleware
        context = {"page": event_page(request.GET.get("tab", "all")), "answer": answer}
        return _shown(request, "events", context)
    return _plain(request, answer, redirect("monitoring:events"))


def _carry_out(
    request: HttpRequest, act: Act, pk: Any, done: str, form: ActionForm
) -> Answer:
    if not form.is_valid():
        return Answer(next(iter(form.errors.values()))[0], 400)
    try:
        action = act(pk, *form.extra(), request=form.asked(request))
    except PermissionMissing as refused:
        return Answer(str(refused), 403)
    except OperationRefused as refused:
        return Answer(str(refused), 409)
    if action.result != OperatorAction.Result.DONE:
        return Answer(action.detail, 409)
    started = (action.after or {}).get("restarted_as", "")
    place = reverse("monitoring:instance", args=[started]) if started else ""
    return Answer(action.detail or done, leads_to=place)


def _asked_from(request: HttpRequest, name: str) -> bool:
    """Whether the form stands on that page."""
    address = request.htmx.current_url_abs_path or ""  # type: ignore[attr-defined]  # set by its middleware
    return str(address).partition("?")[0] == reverse(name)


def _shown(request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
    said = render_to_string("monitoring/parts/answer.html", context, request)
    text = said + live_parts(request, name, context)
    return HttpResponse(text, status=context["answer"].status)


def _plain(request: HttpRequest, answer: Answer, done: HttpResponse) -> HttpResponse:
    """The same for a browser that posts the form by itself."""
    if answer.done:
        messages.success(request, str(answer.text))
        return redirect(answer.leads_to) if answer.leads_to else done
    return render(
        request, "monitoring/refused.html", {"answer": answer}, status=answer.status
    )
