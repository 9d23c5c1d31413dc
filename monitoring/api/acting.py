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

from monitoring.access import (
    EVENTS,
    of_all_seen,
    of_cause,
    of_operation,
    of_process,
    of_selection,
)
from monitoring.api import schemas
from monitoring.api.answers import of_action
from monitoring.api.calls import acts, reads
from monitoring.api.descriptions import SELECTING
from monitoring.api.schemas import told_as
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

Answer = dict[str, Any]


@acts("processes/{uuid:process}/{slug:name}/", "api-act", of=of_process)
def act(request: HttpRequest, process: UUID, name: str) -> Answer:
    """Does something to a process."""
    answer = operations.pressed(request, name, process)
    return of_action(answer, _process(request, process))


@acts(
    "processes/{uuid:process}/steps/{int:visit}/{slug:name}/",
    "api-act-on-step",
    of=of_process,
)
def act_on_step(request: HttpRequest, process: UUID, visit: int, name: str) -> Answer:
    """Does something to one visit of a step."""
    answer = operations.pressed(request, name, process, visit)
    return of_action(answer, _process(request, process))


@acts(
    "processes/{uuid:process}/repair/{slug:name}/",
    "api-change-repair",
    of=of_process,
    include_in_schema=True,
)
def change_repair(request: HttpRequest, process: UUID, name: str) -> Answer:
    """Changes what is staged for a process: `stage`, `undo`, `discard` or `look-again`. The answer has what is staged
    now, and no data.
    """
    said: Any = request.POST
    texts = {
        key: value
        if isinstance(value, str) and not (said.as_json and key == "value")
        else json.dumps(value)
        for key, value in said.items()
    }
    request.POST = texts  # type: ignore[assignment]  # what is staged is read from texts
    _attempt, answer = repair.changed(request, process, name)
    draft = draft_of(get_object_or_404(ProcessInstance, pk=process), request.user)
    edits = [
        {name: edit[name] for name in ("edit", "target") if name in edit}
        for edit in (draft.edits if draft else [])
    ]
    changed_at = draft.changed_at.isoformat() if draft else None
    return of_action(answer, {"staged": edits, "changed_at": changed_at})


@acts("events/{int:event}/{slug:name}/", "api-act-on-event", EVENTS)
def act_on_event(request: HttpRequest, event: int, name: str) -> Answer:
    """Does something to an event that nothing took."""
    answer = operations.pressed_on_event(request, name, event)
    rows = InboxEvent.objects.defer("body").filter(pk=event)
    return of_action(answer, _now(request, "event", schemas.ReceivedEvent, rows))


@acts("events/send/", "api-send-event", EVENTS)
def send_event(request: HttpRequest) -> Answer:
    """Sends an event of the type that the address names."""
    try:
        event = registry.event_class(request.GET.get("type", ""))
    except UnknownEventType:
        raise Http404 from None
    said: Any = request.POST
    return of_action(sending.sent(request, SendForm(event, said)), {})


@acts("events/", "api-events", EVENTS, response={202: schemas.SentEvent})
def receive_event(request: HttpRequest, response: HttpResponse) -> Status[Answer]:
    """Sends an event of the type that the address names, as `send` does: it is stored, and delivered afterwards."""
    sent = send_event(request)
    if "receipt" in sent:
        place = reverse("monitoring:api-event", args=[sent["receipt"]])
        response.headers["Location"] = place
    return Status(202, sent)


@acts("failures/{slug:cause}/{slug:name}/", "api-act-on-failures", of=of_cause)
def act_on_failures(request: HttpRequest, cause: str, name: str) -> Answer:
    """Says something of all failures of one cause."""
    return of_action(failures.pressed(request, name, cause), {})


@reads(
    "operations/begin/",
    "api-begin-operation",
    schemas.BulkPreviewed,
    of=of_selection,
    exclude_unset=True,
    openapi_extra={"parameters": SELECTING},
)
def preview(request: HttpRequest) -> Answer:
    """What an operation would be done to."""
    selection, about = bulk.selected(request)
    operation = bulk.action_of(request, selection)
    if not SELECTIONS[selection].narrows(about):
        return {"shown": 0, "exact": True, "narrowed": False}
    at = moment_shown()
    found = queries.preview(operation, selection, about, at, request.user)
    number = 0 if found.forbidden else found.number
    shown = {"shown": number, "shown_at": found.at}
    limited = {"limits": found.limits, "left_out": found.left_out}
    return {**shown, **limited, "exact": found.exact, "narrowed": True}


@acts("operations/begin/", "api-begin-operation", of=of_selection)
def begin(request: HttpRequest) -> Answer:
    """Begins an operation on what the preview has shown."""
    selection, about = bulk.selected(request)
    operation = bulk.action_of(request, selection)
    form = BulkForm(operation, request.POST, user=request.user)
    return of_action(bulk.begun(request, form, selection, about), {})


@acts(
    "operations/",
    "api-operations",
    of=of_selection,
    response={202: schemas.DoneAction},
)
def begin_operation(request: HttpRequest, response: HttpResponse) -> Status[Answer]:
    """Begins an operation on what the preview has shown, as `start_bulk` does; it is worked on afterwards."""
    begun = begin(request)
    response.headers["Location"] = begun["address"]
    return Status(202, begun)


@acts("operations/{uuid:operation}/{slug:name}/", "api-act-on-bulk", of=of_operation)
def act_on_bulk(request: HttpRequest, operation: UUID, name: str) -> Answer:
    """Pauses, resumes or cancels an operation, or does it once more for what failed."""
    answer = bulk.pressed(request, name, operation)
    rows = BulkOperation.objects.filter(pk=operation)
    return of_action(answer, _now(request, "operation", schemas.OperationOnMany, rows))


@acts("views/save/", "api-save-view", of=of_all_seen)
def save_view(request: HttpRequest) -> Answer:
    """Saves a list under a name."""
    return of_action(saved_views.saved(request), {})


@acts("views/", "api-saved-views", of=of_all_seen, response={201: schemas.DoneAction})
def create_view(request: HttpRequest) -> Status[Answer]:
    """Saves a list under a name, as `save_view` does."""
    return Status(201, save_view(request))


@acts("views/{int:view}/{slug:name}/", "api-act-on-view", of=of_all_seen)
def act_on_view(request: HttpRequest, view: int, name: str) -> Answer:
    """Renames or deletes a view."""
    return of_action(saved_views.pressed(request, name, view), {})


@acts("tokens/{int:token}/{slug:name}/", "api-act-on-token", of=of_all_seen)
def act_on_token(request: HttpRequest, token: int, name: str) -> Answer:
    """Revokes a token; to make one takes a person who has signed in."""
    answer = tokens.pressed(request, name, token)
    rows = AccessToken.objects.filter(pk=token, owner=request.user.pk)
    return of_action(answer, _now(request, "token", schemas.OwnToken, rows))


def _process(request: HttpRequest, pk: UUID) -> Answer:
    rows = ProcessInstance.objects.defer("data").filter(pk=pk)
    return _now(request, "process", schemas.ProcessStanding, rows)


def _now(
    request: HttpRequest, name: str, kind: type[BaseModel], rows: QuerySet[Any]
) -> Answer:
    """The target of an action as it is now; nothing where it is gone."""
    row = rows.first()
    return {name: told_as(kind, row, request)} if row else {}
