"""What pages show, for programs: the same lists by the same addresses, and what actions need of one thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404

from monitoring.access import EVENTS
from monitoring.api.access import for_tokens
from monitoring.api.answers import NotAnswered, answered
from monitoring.api.described import described
from monitoring.masking import about_told
from monitoring.places import NO_CAUSE
from monitoring.queries import bulk as queries
from monitoring.queries.causes import open_of_cause
from monitoring.queries.failures import AlikeFailures, failure_groups
from monitoring.queries.instances.filters import Filters
from monitoring.queries.instances.pages import page_of
from monitoring.queries.saved_views import place_of_view, views_for
from monitoring.spoken import spoken
from monitoring.views.events import events_context
from monitoring.views.failures import fingerprint_of
from monitoring.views.instances import told
from monitoring.views.page import named
from orchestrator.access_tokens import tokens_of
from orchestrator.engine.operations import Circumstances, refusals_of
from orchestrator.models import (
    AccessToken,
    BulkOperation,
    InboxEvent,
    Incident,
    ProcessInstance,
    StepRun,
)

MOST = 200
"""Open visits, and open failures, of one process that are told."""

TOKENS = 100


@for_tokens("GET")
def index(request: HttpRequest) -> HttpResponse:
    """Every action, with where it is posted to and what it is told."""
    return answered({"actions": described()})


@for_tokens("GET")
def processes(request: HttpRequest) -> HttpResponse:
    """A page of the list of processes, narrowed as the list's address is."""
    filters = Filters.from_query(request.GET, request.user).by_name()
    if filters.mistake:
        raise NotAnswered(422, "invalid", filters.mistake)
    found = page_of(filters, request.GET.get("before", ""))
    rows = [{**told(row), "revision": row.revision} for row in found.rows]
    return _page(request, "processes", rows, before=found.older)


@for_tokens("GET")
def process(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One process: how it stands, its open visits and failures, and why each action cannot be done to it now."""
    rows = ProcessInstance.objects.select_related("definition", "owner")
    row = get_object_or_404(rows.defer("data", "definition__graph"), pk=pk)
    visits = StepRun.objects.filter(instance=pk, finished_at=None).order_by("pk")
    failures = Incident.objects.open().filter(instance=pk).order_by("pk")
    why = refusals_of(Circumstances(row), request.user)
    return answered(
        {
            **told(row),
            "revision": row.revision,
            "visits": [_visit(one) for one in visits.defer("result", "element")[:MOST]],
            "failures": [_failure(one, row) for one in failures[:MOST]],
            "refused": {
                name: spoken(said, row.definition) for name, said in why.items() if said
            },
        }
    )


def process_facts(row: ProcessInstance) -> dict[str, Any]:
    """How a process stands."""
    return {
        "process": str(row.pk),
        "status": row.status,
        "step": row.step,
        "revision": row.revision,
    }


def _visit(run: StepRun) -> dict[str, Any]:
    return {
        "visit": run.pk,
        "step": run.node,
        "status": run.status,
        "kind": run.kind,
        "number": run.visit,
        "element": run.item,
        "attempt": run.attempt,
        "until": run.wake_at and run.wake_at.isoformat(),
    }


def _failure(incident: Incident, row: ProcessInstance) -> dict[str, Any]:
    return {
        "failure": incident.pk,
        "kind": incident.kind,
        "cause": incident.fingerprint or NO_CAUSE,
        "message": spoken(incident.message, row.definition),
        "since": incident.opened_at.isoformat(),
        "visit": incident.step_run_id,
        "command": incident.command_id and str(incident.command_id),
        "event": incident.event_id,
    }


@for_tokens("GET", more=(EVENTS,))
def events(request: HttpRequest) -> HttpResponse:
    """A page of the events that need somebody, or that are looked for, as the page of events has them."""
    found = events_context(request, named(request))["page"]
    rows = [event_facts(row) for row in found.rows]
    return _page(request, "events", rows, before=found.older)


@for_tokens("GET", more=(EVENTS,))
def event(request: HttpRequest, pk: int) -> HttpResponse:
    """One event."""
    row = get_object_or_404(InboxEvent.objects.defer("body"), pk=pk)
    return answered(event_facts(row))


def event_facts(row: InboxEvent) -> dict[str, Any]:
    """An event, without what is in it."""
    return {
        "event": row.pk,
        "type": row.type,
        "source": row.source,
        "id": row.event_id,
        "key": row.correlation_key,
        "verdict": row.verdict,
        "process": row.process_id and str(row.process_id),
        "received": row.received_at.isoformat(),
        "error": row.error,
    }


@for_tokens("GET")
def failures(request: HttpRequest) -> HttpResponse:
    """A page of the groups of failures."""
    query = request.GET
    found = failure_groups(
        query.get("order", ""), query.get("before", ""), named(request)
    )
    return _page(
        request, "failures", [_group(row) for row in found.rows], before=found.older
    )


@for_tokens("GET")
def failure_group(request: HttpRequest, cause: str) -> HttpResponse:
    """The newest failures of one cause."""
    rows = open_of_cause(fingerprint_of(cause)).select_related("instance__definition")
    rows = rows.defer("instance__data", "instance__definition__graph")
    found = [
        {
            "failure": row.pk,
            "process": row.instance_id and str(row.instance_id),
            "message": spoken(
                row.message, row.instance.definition if row.instance else None
            ),
            "since": row.opened_at.isoformat(),
        }
        for row in rows[:MOST]
    ]
    return answered({"cause": cause, "failures": found})


def _group(row: AlikeFailures) -> dict[str, Any]:
    return {
        "cause": row.newest.fingerprint or NO_CAUSE,
        "number": row.number.number,
        "exact": not row.number.at_least,
        "newest": row.newest.pk,
        "message": spoken(row.newest.message, row.definition),
        "definition": row.definition and row.definition.name,
        "since": row.oldest.opened_at.isoformat(),
        "last": row.newest.opened_at.isoformat(),
    }


@for_tokens("GET")
def operations(request: HttpRequest) -> HttpResponse:
    """A page of the operations on many; with `going_on=1` of those that go on or are halted."""
    going_on = request.GET.get("going_on") == "1"
    found = queries.operations_page(request.GET.get("before", ""), going_on=going_on)
    rows = [bulk_facts(row, request.user) for row in found.rows]
    return _page(request, "operations", rows, before=found.older)


@for_tokens("GET")
def operation(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One operation, with a page of its items; `?verdict=` narrows these."""
    row = get_object_or_404(BulkOperation, pk=pk)
    query = request.GET
    found = queries.operation_page(
        row, query.get("verdict", ""), query.get("after", "")
    )
    events = request.user.has_perm(EVENTS)
    items = [
        {
            "process": item.process_id and str(item.process_id),
            "event": item.event_id,
            "verdict": item.verdict,
            "detail": item.detail if item.process_id or events else None,
        }
        for item, _target in found.rows
    ]
    facts = bulk_facts(row, request.user)
    return _page(request, "items", items, facts, after=found.older)


def bulk_facts(row: BulkOperation, reader: Any) -> dict[str, Any]:
    """An operation as a reader may know it, and how far it is."""
    return {
        "operation": str(row.pk),
        "action": row.action,
        "status": row.status,
        "revision": row.revision,
        "by": row.actor_name,
        "reason": row.reason,
        "about": about_told(row, reader),
        "begun": row.created_at.isoformat(),
        "ended": row.finished_at and row.finished_at.isoformat(),
        "total": row.total,
        "done_so_far": row.done,
        "failed": row.failed,
        "skipped": row.skipped,
        "not_allowed": row.refused,
    }


@for_tokens("GET")
def views(request: HttpRequest) -> HttpResponse:
    """The saved views that one may open, each with the address of its list."""
    rows = [
        {
            "view": view.pk,
            "name": view.name,
            "revision": view.revision,
            "team": view.owner_id is None,
            "list": place_of_view(view),
        }
        for view in views_for(request.user)
    ]
    return answered({"views": rows})


@for_tokens("GET")
def tokens(request: HttpRequest) -> HttpResponse:
    """One's own tokens; no value of theirs, which nothing has."""
    rows = tokens_of(request.user)[:TOKENS]
    return answered({"tokens": [token_facts(row) for row in rows]})


def token_facts(row: AccessToken) -> dict[str, Any]:
    """A token, as its owner may see it."""
    return {
        "token": row.pk,
        "name": row.name,
        "created": row.created_at.isoformat(),
        "expires": row.expires_at.isoformat(),
        "used": row.last_used_at and row.last_used_at.isoformat(),
        "revoked": row.revoked_at and row.revoked_at.isoformat(),
    }


@for_tokens("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
def nothing(request: HttpRequest, **rest: str) -> HttpResponse:
    """What no other address is."""
    raise Http404


def _page(
    request: HttpRequest,
    name: str,
    rows: list[dict[str, Any]],
    more: Mapping[str, Any] | None = None,
    **beyond: Any,
) -> JsonResponse:
    """A page of a list, with the address of the next one."""
    [(parameter, key)] = beyond.items()
    following = None
    if key:
        query = {**request.GET.dict(), parameter: str(key)}
        following = f"{request.path}?{urlencode(query)}"
    return answered({**(more or {}), name: rows, "next": following})
