"""The audit: its page, and files of the same rows."""

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from monitoring.audit.entry import AuditEntry
from monitoring.audit.filters import SPANS, AuditFilters
from monitoring.audit.pages import audit_batches, audit_page
from monitoring.audit.tallies import action_tallies, actor_names
from monitoring.audit.words import action_names
from monitoring.base.access import AUDIT, EVENTS, page_for
from monitoring.base.masking import sees_data
from monitoring.live.sharing import share_answer
from monitoring.views.lists.exports import Columns, export_list
from monitoring.views.page import page
from orchestrator.models import OperatorAction
from orchestrator.text import code_of


@page_for(AUDIT)
@share_answer
def index(request: HttpRequest) -> HttpResponse:
    """The actions of people, filtered by the address."""
    filters = AuditFilters.from_query(request.GET)
    return page(
        request,
        "audit",
        filters=filters,
        page=audit_page(filters, request.GET.get("before", "")),
        tallies=action_tallies(),
        actions=action_names(),
        people=actor_names(),
        spans=SPANS,
        results=OperatorAction.Result.values,
    )


@page_for(AUDIT)
def export_audit(request: HttpRequest, form: str) -> HttpResponseBase:
    """All matches as CSV or as lines of JSON."""
    filters = AuditFilters.from_query(request.GET)
    events, data = request.user.has_perm(EVENTS), sees_data(request.user)
    columns = _columns(events=events, data=data)
    return export_list(request, form, "audit", columns, filters, audit_batches(filters))


def _columns(*, events: bool, data: bool) -> Columns:
    """Return the columns for programs: names and texts as stored, times in UTC."""

    def event_of(entry: AuditEntry) -> str | None:
        event = entry.row.event if events else None
        return f"{event.type} {event.source} {event.event_id}" if event else None

    def tells(entry: AuditEntry) -> bool:
        return (data or not entry.tells_data) and (events or not entry.tells_events)

    return {
        "at": lambda one: one.row.at.isoformat(),
        "who": lambda one: one.row.actor_name,
        "from": lambda one: one.row.address,
        "way": lambda one: one.way,
        "action": lambda one: one.row.action,
        "process": lambda one: one.row.instance_id and str(one.row.instance_id),
        "key": lambda one: one.row.instance and one.row.instance.correlation_key,
        "definition": lambda one: one.row.instance and one.row.instance.name,
        "event": event_of,
        "reason": lambda one: one.row.reason,
        "revision_seen": lambda one: one.row.expected_revision,
        "before": lambda one: one.before if tells(one) else None,
        "after": lambda one: one.after if tells(one) else None,
        "result": lambda one: one.row.result,
        "detail": lambda one: one.row.detail,
        "code": lambda one: code_of(one.row.said),
    }
