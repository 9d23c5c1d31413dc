"""Who did what: a page, and files of exactly what it matched."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views.decorators.http import require_safe

from monitoring.access import EVENTS, for_audit_viewers
from monitoring.exports import exported
from monitoring.masking import sees_data
from monitoring.queries.audit.entry import AuditEntry
from monitoring.queries.audit.filters import SPANS, AuditFilters
from monitoring.queries.audit.pages import audit_page, batches
from monitoring.queries.audit.tallies import people, tallies
from monitoring.queries.audit.words import action_names
from monitoring.sharing import shared
from monitoring.views.page import page
from orchestrator.models import OperatorAction
from orchestrator.text import code_of

COLUMNS = (
    "at",
    "who",
    "from",
    "way",
    "action",
    "process",
    "key",
    "definition",
    "event",
    "reason",
    "revision_seen",
    "before",
    "after",
    "result",
    "detail",
    "code",
)


@require_safe
@for_audit_viewers
@shared
def index(request: HttpRequest) -> HttpResponse:
    """What people have done, narrowed by what the URL says."""
    filters = AuditFilters.from_query(request.GET)
    return page(
        request,
        "audit",
        filters=filters,
        page=audit_page(filters, request.GET.get("before", "")),
        tallies=tallies(),
        actions=action_names(),
        people=people(),
        spans=SPANS,
        results=OperatorAction.Result.values,
    )


@require_safe
@for_audit_viewers
def export(request: HttpRequest, form: str) -> HttpResponseBase:
    """All that match as CSV or as lines of JSON."""
    filters = AuditFilters.from_query(request.GET)
    events, data = request.user.has_perm(EVENTS), sees_data(request.user)
    parts: Iterator[list[Mapping[str, Any]]] = (
        [_told(entry, events=events, data=data) for entry in part]
        for part in batches(filters)
    )
    return exported(request, form, "audit", COLUMNS, filters, parts)


def _told(entry: AuditEntry, *, events: bool, data: bool) -> dict[str, Any]:
    """A row for programs: names and texts as they are stored, times in UTC."""
    row, process = entry.row, entry.row.instance
    event = row.event if events else None
    tells = (data or not entry.tells_data) and (events or not entry.tells_events)
    return {
        "at": row.at.isoformat(),
        "who": row.actor_name,
        "from": row.address,
        "way": entry.way,
        "action": row.action,
        "process": row.instance_id and str(row.instance_id),
        "key": process and process.correlation_key,
        "definition": process and process.name,
        "event": event and f"{event.type} {event.source} {event.event_id}",
        "reason": row.reason,
        "revision_seen": row.expected_revision,
        "before": entry.before if tells else None,
        "after": entry.after if tells else None,
        "result": row.result,
        "detail": row.detail,
        "code": code_of(row.said),
    }
