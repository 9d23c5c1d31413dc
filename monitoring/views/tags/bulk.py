"""Tags of the pages of bulk operations."""

from typing import Any
from urllib.parse import urlencode

from django.template import Context, Library
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from monitoring.base.graphs import find_label
from monitoring.base.row_addresses import begin_address
from monitoring.base.translation import translate
from monitoring.lists.events.event_search import EventFilters
from monitoring.lists.failures.causes import why_no_retry
from monitoring.lists.processes.filters import Filters
from monitoring.views.tags.console import chip
from orchestrator.engine.operations import OPERATIONS, forbidden_in_bulk
from orchestrator.models import BulkOperation, BulkVerdict, Incident

register = Library()
register.simple_tag(find_label, name="known_step")
register.simple_tag(begin_address, name="begin_address")

WORDS = {
    "waiting": "ready",
    "tried": "running",
    "gathering": "ready",
    "stopped": "failed",
}
"""Statuses and verdicts with the look of another status."""


@register.simple_tag
def number_of(operation: BulkOperation) -> int:
    """Return the number of items; until they are frozen, the number that the preview showed."""
    return operation.total if operation.frozen_at else operation.shown


@register.simple_tag
def text_of(text: str, row: Any) -> str:
    """Return a text of the engine about a row, which may be gone."""
    return translate(text, getattr(row, "definition", None)) if text else "—"


@register.simple_tag
def bulk_chip(status: str, word: str) -> SafeString:
    """Return the chip of an operation or of one of its items."""
    return chip(WORDS.get(status, status), word)


@register.simple_tag
def operation_chip(operation: BulkOperation) -> SafeString:
    """Return the chip of an operation; it names an end at which nothing was done."""
    acted = operation.done + operation.failed  # what failed again was tried
    if operation.status == "completed" and operation.total and not acted:
        return chip("failed", _("ended, nothing was done"))
    return bulk_chip(operation.status, operation.get_status_display())


@register.simple_tag
def verdict_chip(operation: BulkOperation, verdict: str) -> SafeString:
    """Return the chip of an item's verdict; waiting items of a cancelled operation have not begun."""
    if verdict == BulkVerdict.WAITING and operation.status == "cancelled":
        return chip("cancelled", _("not begun"))
    return bulk_chip(verdict, str(verdict_word(verdict)))


@register.filter
def action_label(name: str) -> Any:
    """Return the label of an action."""
    return OPERATIONS[name].label if name in OPERATIONS else name


@register.filter
def verdict_word(verdict: str) -> Any:
    """Return the label of a verdict; "" stands for all."""
    return dict(BulkVerdict.choices).get(verdict, verdict) if verdict else _("All")


@register.inclusion_tag("monitoring/parts/begin.html", takes_context=True)
def begin_bulk(
    context: Context,
    name: str,
    filters: Filters | None = None,
    definition: str = "",
    because: str = "",
    **given: str,
) -> dict[str, Any]:
    """Return the button that opens the form of a bulk operation.

    Args:
        context: of the page.
        name: the action.
        filters: the filters of the list, for an operation on its rows.
        definition: of all selected rows, if they have one.
        because: a reason that holds for every reader; "" without one.
        given: further parameters of the selection.
    """
    operation, user = OPERATIONS[name], context["request"].user
    about = {**(filters.narrowing() if filters else {}), **given}
    query = urlencode({"action": name, **about})
    one = definition or (filters.definition if filters else "")
    why = forbidden_in_bulk(operation, user, one)
    return {
        "operation": operation,
        "label": _("Act on all that match") if filters else operation.label,
        "tone": "" if filters or operation.tone == "danger" else "primary",
        "why": because or why or ("" if about else _("Narrow the list first")),
        "address": f"{reverse('monitoring:begin-operation')}?{query}",
        "place": name,
    }


@register.inclusion_tag("monitoring/parts/begin.html", takes_context=True)
def begin_on_events(context: Context, name: str) -> dict[str, Any]:
    """Return the same for the events of the page."""
    filters = EventFilters(verdict=context["tab"])
    if context["looking"]:
        filters = context["filters"]
    return begin_bulk(context, name, None, of="events", **filters.parameters())


@register.simple_tag(takes_context=True)
def begins_at(context: Context) -> str:
    """Return the whole address of the form that begins an operation; "" for the address of the page."""
    filters: Filters | None = context.get("filters")
    if context.get("selection", "processes") != "processes" or filters is None:
        return ""
    query = urlencode({"action": context["operation"].name, **filters.narrowing()})
    return f"{reverse('monitoring:begin-operation')}?{query}"


@register.simple_tag(takes_context=True)
def not_retried(context: Context, newest: Incident, definition: str) -> str:
    """Return the reason why a reader cannot retry what has failed of one cause; "" if they can."""
    return why_no_retry(newest, context["request"].user, definition)


@register.simple_tag
def items_query(verdict: str, after: int | None = None) -> str:
    """Return the parameters of a page of items."""
    given = {"verdict": verdict, "after": after}
    return f"?{urlencode({name: value for name, value in given.items() if value})}"
