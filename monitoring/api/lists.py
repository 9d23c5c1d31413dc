"""The lists of the console for programs, with the same parameters, and single rows with fields for actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from monitoring.api import parameters as ask
from monitoring.api import schemas
from monitoring.api.answers import NotAnswered
from monitoring.api.descriptions import described_actions
from monitoring.api.parameters import KnownQuery as Known
from monitoring.api.routes import api, get
from monitoring.base.access import (
    EVENTS,
    bulk_scope,
    cause_scope,
    list_scope,
    process_scope,
    reader_scope,
    visible_definitions,
)
from monitoring.base.masking import data_of, sees_data
from monitoring.base.translation import translate
from monitoring.lists.bulk import bulk
from monitoring.lists.failures.causes import failures_page
from monitoring.lists.failures.failures import failure_groups
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import process_page
from monitoring.lists.processes.saved_views import views_for
from monitoring.lists.tokens import newest_tokens
from monitoring.process.history.checkpoints import checkpoints_of
from monitoring.process.history.history_lines import json_transitions
from monitoring.process.steps.visits import workflow_result
from monitoring.views.failures import fingerprint_of
from monitoring.views.instances import process_row
from monitoring.views.lists.events import events_context
from monitoring.views.page import definition_in
from orchestrator.engine.operations import Circumstances, refusals_of
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    Incident,
    ProcessInstance,
    StepRun,
)
from orchestrator.snapshot import snapshot

NOTHING = Known(ask.NoParameters())

MOST = 200
"""Open visits, and open failures, of one process at most."""


@get("", "api", schemas.DescribedActions, of=reader_scope)
def actions(
    request: HttpRequest, asked: Annotated[ask.NoParameters, NOTHING]
) -> dict[str, Any]:
    """All actions with their addresses and fields."""
    return {"actions": described_actions()}


@get("processes/", "api-instances", schemas.PageOfProcesses, of=list_scope)
def processes(
    request: HttpRequest, asked: Annotated[ask.OfProcesses, Known(...)]
) -> dict[str, Any]:
    """A page of the list of processes, with the filters of its page in the console."""
    filters = Filters.from_query(request.GET, request.user).by_name()
    if filters.mistake:
        raise NotAnswered(422, "invalid", filters.mistake)
    found = process_page(filters, request.GET.get("before", ""), asked.limit)
    rows = [{**process_row(row), "revision": row.revision} for row in found.rows]
    return _page(request, "processes", rows, before=found.older)


@get(
    "processes/{uuid:process}/", "api-instance", schemas.WholeProcess, of=process_scope
)
def process(
    request: HttpRequest, process: UUID, asked: Annotated[ask.OfPage, Known(...)]
) -> dict[str, Any]:
    """One process: its status, open visits and failures, the reasons that forbid actions, its data and result.

    The answer has a page of its history, newest first.
    """
    rows = ProcessInstance.objects.select_related("definition", "owner")
    with snapshot():
        row = get_object_or_404(rows.defer("definition__graph"), pk=process)
        visits = StepRun.objects.filter(instance=process, finished_at=None)
        failures = Incident.objects.open().filter(instance=process).order_by("pk")
        why = refusals_of(Circumstances(row), request.user)
        sees = sees_data(request.user)
        page = checkpoints_of(row.checkpoints.all(), asked.before, asked.limit)
        about = {
            **process_row(row),
            "revision": row.revision,
            "visits": list(visits.order_by("pk").defer("result", "element")[:MOST]),
            "failures": list(failures.select_related("instance__definition")[:MOST]),
            "refused": {
                name: translate(said, row.definition)
                for name, said in why.items()
                if said
            },
            "data": data_of(row) if sees else None,
            "result": workflow_result(row) if sees else None,
        }
        history = json_transitions(row, page, sees=sees)
        older = page.page[-1].revision if page.next else None
        return _page(request, "history", history, about, before=older)


@get("events/", "api-events", schemas.PageOfEvents, EVENTS)
def events(
    request: HttpRequest, asked: Annotated[ask.OfEvents, Known(...)]
) -> dict[str, Any]:
    """A page of the events that no process took, or of the events that match the filters."""
    found = events_context(request, definition_in(request), asked.limit)
    if found["filters"].mistake:
        raise NotAnswered(422, "invalid", found["filters"].mistake)
    return _page(request, "events", found["page"].rows, before=found["page"].older)


@get("events/{int:event}/", "api-event", schemas.ReceivedEvent, EVENTS)
def event(
    request: HttpRequest, event: int, asked: Annotated[ask.NoParameters, NOTHING]
) -> Any:
    """One event."""
    return get_object_or_404(InboxEvent.objects.defer("body"), pk=event)


@get("failures/", "api-failures", schemas.PageOfGroups, of=list_scope)
def failures(
    request: HttpRequest, asked: Annotated[ask.OfFailures, Known(...)]
) -> dict[str, Any]:
    """A page of the groups of failures."""
    order, before = asked.order or "", request.GET.get("before", "")
    found = failure_groups(order, before, definition_in(request), asked.limit)
    return _page(request, "failures", found.rows, before=found.older)


@get("failures/{slug:cause}/", "api-failure-group", schemas.PageOfCause, of=cause_scope)
def failure_group(
    request: HttpRequest, cause: str, asked: Annotated[ask.OfCause, Known(...)]
) -> dict[str, Any]:
    """A page of the failures of one cause, newest first."""
    before = request.GET.get("before", "")
    found = failures_page(fingerprint_of(cause), before, asked.limit)
    about = {"cause": cause}
    return _page(request, "failures", found.rows, about, before=found.older)


@get("operations/", "api-operations", schemas.PageOfOperations)
def operations(
    request: HttpRequest, asked: Annotated[ask.OfOperations, Known(...)]
) -> dict[str, Any]:
    """A page of the bulk operations, newest first."""
    going_on, before = bool(asked.going_on), request.GET.get("before", "")
    found = bulk.operations_page(before, going_on=going_on, size=asked.limit)
    return _page(request, "operations", found.rows, before=found.older)


@get(
    "operations/{uuid:operation}/",
    "api-bulk-operation",
    schemas.PageOfItems,
    of=bulk_scope,
)
def operation(
    request: HttpRequest, operation: UUID, asked: Annotated[ask.OfItems, Known(...)]
) -> HttpResponse:
    """One bulk operation, with a page of its items."""
    row = get_object_or_404(BulkOperation, pk=operation)
    after = request.GET.get("after", "")
    found = bulk.operation_page(row, asked.verdict or "", after, asked.limit)
    about = schemas.serialize(schemas.OperationOnMany, row, request)
    items = [
        schemas.serialize(schemas.ItemOfMany, item, request)
        for item, _target in found.rows
    ]
    told = _page(request, "items", items, about, after=found.older)
    return api.create_response(request, told, status=200)


@get("views/", "api-saved-views", schemas.SavedViews, of=reader_scope)
def views(
    request: HttpRequest, asked: Annotated[ask.NoParameters, NOTHING]
) -> dict[str, Any]:
    """The saved views that the user may open, each with the address of its list."""
    return {"views": views_for(request.user, visible_definitions(request))}


@get("tokens/", "api-tokens", schemas.PageOfTokens, of=reader_scope)
def tokens(
    request: HttpRequest, asked: Annotated[ask.OfTokens, Known(...)]
) -> dict[str, Any]:
    """A page of the user's own tokens, newest first, without their values."""
    before = request.GET.get("before", "")
    found = newest_tokens(request.user, before, asked.limit)
    return _page(request, "tokens", found.rows, before=found.older)


def _page(
    request: HttpRequest,
    name: str,
    rows: Any,
    more: Mapping[str, Any] | None = None,
    **beyond: Any,
) -> dict[str, Any]:
    """Return a page of a list, with the address of the next one."""
    [(parameter, key)] = beyond.items()
    following = None
    if key:
        query = {**request.GET.dict(), parameter: str(key)}
        following = f"{request.path}?{urlencode(query)}"
    return {**(more or {}), name: rows, "next": following}
