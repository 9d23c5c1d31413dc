"""What pages show, for programs: the same lists by the same parameters, and what actions need of one thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from monitoring.access import (
    EVENTS,
    of_all_seen,
    of_cause,
    of_list,
    of_operation,
    of_process,
    seen_in,
)
from monitoring.api import parameters as ask
from monitoring.api import schemas
from monitoring.api.answers import NotAnswered
from monitoring.api.calls import api, reads
from monitoring.api.descriptions import described
from monitoring.api.parameters import KnownQuery as Known
from monitoring.masking import data_of, sees_data
from monitoring.queries import bulk
from monitoring.queries.causes import open_of_cause
from monitoring.queries.failures import failure_groups
from monitoring.queries.instance.checkpoints import checkpoints_of
from monitoring.queries.instance.ledger_lines import lines_of
from monitoring.queries.instance.visits import result_of
from monitoring.queries.instances.filters import Filters
from monitoring.queries.instances.pages import page_of
from monitoring.queries.lists import page_by_key
from monitoring.queries.saved_views import views_for
from monitoring.queries.texts import translated
from monitoring.views.events import events_context
from monitoring.views.failures import fingerprint_of
from monitoring.views.instances import told
from monitoring.views.page import named
from orchestrator.access_tokens import tokens_of
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
"""Open visits, and open failures, of one process that are told."""


@reads("", "api", schemas.DescribedActions, of=of_all_seen)
def actions(
    request: HttpRequest, asked: Annotated[ask.NoParameters, NOTHING]
) -> dict[str, Any]:
    """Every action, with where it is posted to and what it is told."""
    return {"actions": described()}


@reads("processes/", "api-instances", schemas.PageOfProcesses, of=of_list)
def processes(
    request: HttpRequest, asked: Annotated[ask.OfProcesses, Known(...)]
) -> dict[str, Any]:
    """A page of the list of processes, narrowed as the address of its page is."""
    filters = Filters.from_query(request.GET, request.user).by_name()
    if filters.mistake:
        raise NotAnswered(422, "invalid", filters.mistake)
    found = page_of(filters, request.GET.get("before", ""), asked.limit)
    rows = [{**told(row), "revision": row.revision} for row in found.rows]
    return _page(request, "processes", rows, before=found.older)


@reads("processes/{uuid:process}/", "api-instance", schemas.WholeProcess, of=of_process)
def process(
    request: HttpRequest,
    process: UUID,
    asked: Annotated[ask.OfPage, Known(...)],
) -> dict[str, Any]:
    """One process: how it stands, its open visits and failures, why each action cannot be done to it now, its data,
    its result, and a page of its history, newest first.
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
            **told(row),
            "revision": row.revision,
            "visits": list(visits.order_by("pk").defer("result", "element")[:MOST]),
            "failures": list(failures.select_related("instance__definition")[:MOST]),
            "refused": {
                name: translated(said, row.definition)
                for name, said in why.items()
                if said
            },
            "data": data_of(row) if sees else None,
            "result": result_of(row) if sees else None,
        }
        history = lines_of(row, page, sees=sees)
        older = page.page[-1].revision if page.next else None
        return _page(request, "history", history, about, before=older)


@reads("events/", "api-events", schemas.PageOfEvents, EVENTS)
def events(
    request: HttpRequest, asked: Annotated[ask.OfEvents, Known(...)]
) -> dict[str, Any]:
    """A page of the events that need somebody, or that are looked for, as the page of events has them."""
    found = events_context(request, named(request), asked.limit)
    if found["filters"].mistake:
        raise NotAnswered(422, "invalid", found["filters"].mistake)
    return _page(request, "events", found["page"].rows, before=found["page"].older)


@reads("events/{int:event}/", "api-event", schemas.ReceivedEvent, EVENTS)
def event(
    request: HttpRequest, event: int, asked: Annotated[ask.NoParameters, NOTHING]
) -> Any:
    """One event."""
    return get_object_or_404(InboxEvent.objects.defer("body"), pk=event)


@reads("failures/", "api-failures", schemas.PageOfGroups, of=of_list)
def failures(
    request: HttpRequest, asked: Annotated[ask.OfFailures, Known(...)]
) -> dict[str, Any]:
    """A page of the groups of failures."""
    order, before = asked.order or "", request.GET.get("before", "")
    found = failure_groups(order, before, named(request), asked.limit)
    return _page(request, "failures", found.rows, before=found.older)


@reads("failures/{slug:cause}/", "api-failure-group", schemas.PageOfCause, of=of_cause)
def failure_group(
    request: HttpRequest, cause: str, asked: Annotated[ask.OfCause, Known(...)]
) -> dict[str, Any]:
    """A page of the failures of one cause, newest first."""
    rows = open_of_cause(fingerprint_of(cause)).select_related("instance__definition")
    rows = rows.defer("instance__data", "instance__definition__graph")
    return _by_key(request, "failures", rows, asked, {"cause": cause})


@reads("operations/", "api-operations", schemas.PageOfOperations)
def operations(
    request: HttpRequest, asked: Annotated[ask.OfOperations, Known(...)]
) -> dict[str, Any]:
    """A page of the operations on many, newest first."""
    going_on, before = bool(asked.going_on), request.GET.get("before", "")
    found = bulk.operations_page(before, going_on=going_on, size=asked.limit)
    return _page(request, "operations", found.rows, before=found.older)


@reads(
    "operations/{uuid:operation}/",
    "api-bulk-operation",
    schemas.PageOfItems,
    of=of_operation,
)
def operation(
    request: HttpRequest,
    operation: UUID,
    asked: Annotated[ask.OfItems, Known(...)],
) -> HttpResponse:
    """One operation on many, with a page of its items."""
    row = get_object_or_404(BulkOperation, pk=operation)
    after = request.GET.get("after", "")
    found = bulk.operation_page(row, asked.verdict or "", after, asked.limit)
    about = schemas.told_as(schemas.OperationOnMany, row, request)
    items = [
        schemas.told_as(schemas.ItemOfMany, item, request)
        for item, _target in found.rows
    ]
    told = _page(request, "items", items, about, after=found.older)
    return api.create_response(request, told, status=200)


@reads("views/", "api-saved-views", schemas.SavedViews, of=of_all_seen)
def views(
    request: HttpRequest, asked: Annotated[ask.NoParameters, NOTHING]
) -> dict[str, Any]:
    """The saved views that one may open, each with the address of its list."""
    return {"views": views_for(request.user, seen_in(request))}


@reads("tokens/", "api-tokens", schemas.PageOfTokens, of=of_all_seen)
def tokens(
    request: HttpRequest, asked: Annotated[ask.OfTokens, Known(...)]
) -> dict[str, Any]:
    """A page of one's own tokens, newest first; no value of theirs, which nothing has."""
    return _by_key(request, "tokens", tokens_of(request.user), asked)


def _by_key(
    request: HttpRequest,
    name: str,
    rows: Any,
    asked: ask.OfPage,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A page of rows in the order of their keys, the last one first."""
    before = "" if asked.before is None else str(asked.before)
    page = page_by_key(rows, asked.limit, before)
    return _page(request, name, page.rows, more, before=page.older)


def _page(
    request: HttpRequest,
    name: str,
    rows: Any,
    more: Mapping[str, Any] | None = None,
    **beyond: Any,
) -> dict[str, Any]:
    """A page of a list, with the address of the next one."""
    [(parameter, key)] = beyond.items()
    following = None
    if key:
        query = {**request.GET.dict(), parameter: str(key)}
        following = f"{request.path}?{urlencode(query)}"
    return {**(more or {}), name: rows, "next": following}
