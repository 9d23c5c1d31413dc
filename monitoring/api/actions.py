"""The actions of the console, called by programs: the same checks, the same effect, the same audit row."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Status
from pydantic import BaseModel

from monitoring.api import schemas
from monitoring.api.answers import report
from monitoring.api.descriptions import SELECTING
from monitoring.api.routes import get, post
from monitoring.api.schemas import serialize
from monitoring.base.access import (
    EVENTS,
    bulk_scope,
    cause_scope,
    process_scope,
    reader_scope,
    selection_scope,
)
from monitoring.forms.bulk_form import BulkForm
from monitoring.forms.send_form import SendForm
from monitoring.lists.bulk import bulk as queries
from monitoring.views import bulk, failures
from monitoring.views.actions import operations, repair, saved_views, sending, tokens
from orchestrator import registry
from orchestrator.engine.operations import SELECTIONS, draft_of, moment_shown
from orchestrator.exceptions import UnknownEventType
from orchestrator.models import AccessToken, BulkOperation, InboxEvent, ProcessInstance

JsonAnswer = dict[str, Any]


@post("processes/{uuid:process}/{slug:name}/", "api-act", of=process_scope)
def act(request: HttpRequest, process: UUID, name: str) -> JsonAnswer:
    """Act on a process."""
    answer = operations.perform_on_process(request, name, process)
    return report(answer, _process(request, process))


@post(
    "processes/{uuid:process}/steps/{int:visit}/{slug:name}/",
    "api-act-on-step",
    of=process_scope,
)
def act_on_visit(
    request: HttpRequest, process: UUID, visit: int, name: str
) -> JsonAnswer:
    """Act on one visit of a step."""
    answer = operations.perform_on_process(request, name, process, visit)
    return report(answer, _process(request, process))


@post(
    "processes/{uuid:process}/repair/{slug:name}/",
    "api-change-repair",
    of=process_scope,
    include_in_schema=True,
)
def change_repair(request: HttpRequest, process: UUID, name: str) -> JsonAnswer:
    """Change the staged edits of a process: `stage`, `undo`, `discard` or `look-again`.

    The answer has the staged edits of now, and no data.
    """
    said: Any = request.POST
    texts = {
        key: value
        if isinstance(value, str) and not (said.as_json and key == "value")
        else json.dumps(value)
        for key, value in said.items()
    }
    request.POST = texts  # type: ignore[assignment]  # edits are read from texts
    _attempt, answer = repair.change_draft(request, process, name)
    draft = draft_of(get_object_or_404(ProcessInstance, pk=process), request.user)
    edits = [
        {name: edit[name] for name in ("edit", "target") if name in edit}
        for edit in (draft.edits if draft else [])
    ]
    changed_at = draft.changed_at.isoformat() if draft else None
    return report(answer, {"staged": edits, "changed_at": changed_at})


@post("events/{int:event}/{slug:name}/", "api-act-on-event", EVENTS)
def act_on_inbox_event(request: HttpRequest, event: int, name: str) -> JsonAnswer:
    """Act on an event that no process took."""
    answer = operations.perform_on_event(request, name, event)
    rows = InboxEvent.objects.defer("body").filter(pk=event)
    return report(answer, _now(request, "event", schemas.ReceivedEvent, rows))


@post("events/send/", "api-send-event", EVENTS)
def post_event(request: HttpRequest) -> JsonAnswer:
    """Send an event of the type in the address."""
    try:
        event = registry.event_class(request.GET.get("type", ""))
    except UnknownEventType:
        raise Http404 from None
    said: Any = request.POST
    return report(sending.send_from_form(request, SendForm(event, said)), {})


@post("events/", "api-events", EVENTS, response={202: schemas.SentEvent})
def receive_event(request: HttpRequest, response: HttpResponse) -> Status[JsonAnswer]:
    """Send an event of the type in the address, as `send` does. It is stored, and delivered afterwards."""
    sent = post_event(request)
    if "receipt" in sent:
        place = reverse("monitoring:api-event", args=[sent["receipt"]])
        response.headers["Location"] = place
    return Status(202, sent)


@post("failures/{slug:cause}/{slug:name}/", "api-act-on-failures", of=cause_scope)
def act_on_failures(request: HttpRequest, cause: str, name: str) -> JsonAnswer:
    """Act on all failures of one cause."""
    return report(failures.perform_on_failures(request, name, cause), {})


@get(
    "operations/begin/",
    "api-begin-operation",
    schemas.BulkPreviewed,
    of=selection_scope,
    exclude_unset=True,
    openapi_extra={"parameters": SELECTING},
)
def preview(request: HttpRequest) -> JsonAnswer:
    """Preview the rows of a bulk operation."""
    selection, about = bulk.read_selection(request)
    operation = bulk.action_of(request, selection)
    if not SELECTIONS[selection].narrows(about):
        return {"shown": 0, "exact": True, "narrowed": False}
    at = moment_shown()
    found = queries.bulk_preview(operation, selection, about, at, request.user)
    number = 0 if found.forbidden else found.number
    shown = {"shown": number, "shown_at": found.at}
    limited = {"limits": found.limits, "left_out": found.left_out}
    return {**shown, **limited, "exact": found.exact, "narrowed": True}


@post("operations/begin/", "api-begin-operation", of=selection_scope)
def begin_previewed(request: HttpRequest) -> JsonAnswer:
    """Begin a bulk operation on the rows of the preview."""
    selection, about = bulk.read_selection(request)
    operation = bulk.action_of(request, selection)
    form = BulkForm(operation, request.POST, user=request.user)
    return report(bulk.begin_from_form(request, form, selection, about), {})


@post(
    "operations/",
    "api-operations",
    of=selection_scope,
    response={202: schemas.DoneAction},
)
def begin_operation(request: HttpRequest, response: HttpResponse) -> Status[JsonAnswer]:
    """Begin a bulk operation on the rows of the preview, as `start_bulk` does. It is carried out afterwards."""
    begun = begin_previewed(request)
    response.headers["Location"] = begun["address"]
    return Status(202, begun)


@post("operations/{uuid:operation}/{slug:name}/", "api-act-on-bulk", of=bulk_scope)
def act_on_bulk(request: HttpRequest, operation: UUID, name: str) -> JsonAnswer:
    """Pause, resume or cancel a bulk operation, or repeat it for its failed items."""
    answer = bulk.perform_on_bulk(request, name, operation)
    rows = BulkOperation.objects.filter(pk=operation)
    return report(answer, _now(request, "operation", schemas.OperationOnMany, rows))


@post("views/save/", "api-save-view", of=reader_scope)
def save_view(request: HttpRequest) -> JsonAnswer:
    """Save a list under a name."""
    return report(saved_views.save_from_form(request), {})


@post("views/", "api-saved-views", of=reader_scope, response={201: schemas.DoneAction})
def create_view(request: HttpRequest) -> Status[JsonAnswer]:
    """Save a list under a name, as `save_view` does."""
    return Status(201, save_view(request))


@post("views/{int:view}/{slug:name}/", "api-act-on-view", of=reader_scope)
def act_on_view(request: HttpRequest, view: int, name: str) -> JsonAnswer:
    """Rename or delete a view."""
    return report(saved_views.perform_on_view(request, name, view), {})


@post("tokens/{int:token}/{slug:name}/", "api-act-on-token", of=reader_scope)
def act_on_token(request: HttpRequest, token: int, name: str) -> JsonAnswer:
    """Revoke a token. Only a person who has signed in can make one."""
    answer = tokens.perform_on_token(request, name, token)
    rows = AccessToken.objects.filter(pk=token, owner=request.user.pk)
    return report(answer, _now(request, "token", schemas.OwnToken, rows))


def _process(request: HttpRequest, pk: UUID) -> JsonAnswer:
    rows = ProcessInstance.objects.defer("data").filter(pk=pk)
    return _now(request, "process", schemas.ProcessStanding, rows)


def _now(
    request: HttpRequest, name: str, kind: type[BaseModel], rows: QuerySet[Any]
) -> JsonAnswer:
    """Return the target of an action as it is now; empty if it is gone."""
    row = rows.first()
    return {name: serialize(kind, row, request)} if row else {}
