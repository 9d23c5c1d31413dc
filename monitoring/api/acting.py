"""Each button's form, pressed by a program: the same checks, the same effect, the same audit row, answered as JSON."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from monitoring.access import EVENTS
from monitoring.api.access import for_tokens, posted
from monitoring.api.answers import answered, of_action
from monitoring.api.looking import (
    bulk_facts,
    event_facts,
    process_facts,
    token_facts,
)
from monitoring.bulk_form import BulkForm
from monitoring.queries import bulk as queries
from monitoring.send_form import SendForm
from monitoring.views import (
    bulk,
    failures,
    operations,
    repair,
    saved_views,
    sending,
    tokens,
)
from orchestrator import registry
from orchestrator.engine.operations import SELECTIONS, draft_of, moment_shown
from orchestrator.exceptions import UnknownEventType
from orchestrator.models import (
    AccessToken,
    BulkOperation,
    InboxEvent,
    ProcessInstance,
)


@for_tokens("POST")
def act(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    """Does something to a process."""
    answer = operations.pressed(request, name, pk)
    return of_action(answer, _process(pk))


@for_tokens("POST")
def act_on_step(request: HttpRequest, pk: UUID, run: int, name: str) -> HttpResponse:
    """Does something to one visit of a step."""
    answer = operations.pressed(request, name, pk, run)
    return of_action(answer, _process(pk))


@for_tokens("POST")
def change_repair(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    """Changes what is staged for a process; the answer has what it is, and no data."""
    said = posted(request)
    texts = {
        key: value
        if isinstance(value, str) and not (said.as_json and key == "value")
        else json.dumps(value)
        for key, value in said.items()
    }
    request.POST = texts  # type: ignore[assignment]  # what is staged is read from texts
    _attempt, answer = repair.changed(request, pk, name)
    draft = draft_of(get_object_or_404(ProcessInstance, pk=pk), request.user)
    edits = [
        {name: edit[name] for name in ("edit", "target") if name in edit}
        for edit in (draft.edits if draft else [])
    ]
    changed_at = draft.changed_at.isoformat() if draft else None
    return of_action(answer, {"staged": edits, "changed_at": changed_at})


@for_tokens("POST", more=(EVENTS,))
def act_on_event(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Does something to an event that nothing took."""
    answer = operations.pressed_on_event(request, name, pk)
    event = InboxEvent.objects.defer("body").filter(pk=pk).first()
    return of_action(answer, {"event": event_facts(event)} if event else {})


@for_tokens("POST", more=(EVENTS,))
def send_event(request: HttpRequest) -> HttpResponse:
    """Sends an event of the type that the address names."""
    try:
        event = registry.event_class(request.GET.get("type", ""))
    except UnknownEventType:
        raise Http404 from None
    return of_action(sending.sent(request, SendForm(event, posted(request))), {})


@for_tokens("POST")
def act_on_failures(request: HttpRequest, cause: str, name: str) -> HttpResponse:
    """Says something of all failures of one cause."""
    return of_action(failures.pressed(request, name, cause), {})


@for_tokens("GET", "POST")
def begin(request: HttpRequest) -> HttpResponse:
    """Tells what an operation would be done to; posted to it begins one on what that has shown."""
    selection, about = bulk.selected(request)
    operation = bulk.action_of(request, selection)
    if request.method == "POST":
        form = BulkForm(operation, posted(request), user=request.user)
        return of_action(bulk.begun(request, form, selection, about), {})
    if not SELECTIONS[selection].narrows(about):
        return answered({"shown": 0, "exact": True, "narrowed": False})
    at = moment_shown()
    found = queries.preview(operation, selection, about, at, request.user)
    number = 0 if found.forbidden else found.number
    shown = {"shown": number, "shown_at": found.at.isoformat()}
    limited = {"limits": found.limits, "left_out": found.left_out}
    return answered({**shown, **limited, "exact": found.exact, "narrowed": True})


@for_tokens("POST")
def act_on_bulk(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    """Pauses, resumes or cancels an operation, or does it once more for what failed."""
    answer = bulk.pressed(request, name, pk)
    row = BulkOperation.objects.get(pk=pk)
    return of_action(answer, {"operation": bulk_facts(row, request.user)})


@for_tokens("POST")
def save_view(request: HttpRequest) -> HttpResponse:
    """Saves a list under a name."""
    return of_action(saved_views.saved(request), {})


@for_tokens("POST")
def act_on_view(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Renames or deletes a view."""
    return of_action(saved_views.pressed(request, name, pk), {})


@for_tokens("POST")
def act_on_token(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """Revokes a token; to make one takes a person who has signed in."""
    answer = tokens.pressed(request, name, pk)
    rows = AccessToken.objects.filter(pk=pk, owner=request.user.pk)
    row: Any = rows.first()
    return of_action(answer, {"token": token_facts(row)} if row else {})


def _process(pk: UUID) -> dict[str, Any]:
    rows = ProcessInstance.objects.only("status", "step", "revision").filter(pk=pk)
    row = rows.first()
    return {"process": process_facts(row)} if row else {}
