"""Tags of the pages of bulk operations."""

from typing import Any
from urllib.parse import urlencode

from django.template import Context, Library
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from monitoring.places import begin_of
from monitoring.queries.event_search import EventFilters
from monitoring.queries.graphs import step_of
from monitoring.queries.instances.filters import Filters
from monitoring.queries.texts import translated
from monitoring.templatetags.console import chip
from orchestrator.engine.operations import OPERATIONS, forbidden_in_bulk
from orchestrator.models import BulkOperation, BulkVerdict

register = Library()
register.simple_tag(step_of, name="known_step")
register.simple_tag(begin_of, name="begin_address")

WORDS = {
    "waiting": "ready",
    "tried": "running",
    "gathering": "ready",
    "stopped": "failed",
}
"""Statuses and verdicts whose look is that of another word."""


@register.simple_tag
def number_of(operation: BulkOperation) -> int:
    """On how many it is: as long as they are being frozen, on those that were shown."""
    return operation.total if operation.frozen_at else operation.shown


@register.simple_tag
def text_of(text: str, row: Any) -> str:
    """A text of the engine about a process, an event, or what is gone."""
    return translated(text, getattr(row, "definition", None)) if text else "—"


@register.simple_tag
def bulk_chip(status: str, word: str) -> SafeString:
    """The chip of an operation or of one of its items."""
    return chip(WORDS.get(status, status), word)


@register.simple_tag
def verdict_chip(operation: BulkOperation, verdict: str) -> SafeString:
    """The verdict of an item; what waits in a cancelled operation was not done."""
    if verdict == BulkVerdict.WAITING and operation.status == "cancelled":
        return chip("cancelled", _("not begun"))
    return bulk_chip(verdict, str(verdict_word(verdict)))


@register.filter
def action_label(name: str) -> Any:
    """An action as people read it."""
    return OPERATIONS[name].label if name in OPERATIONS else name


@register.filter
def verdict_word(verdict: str) -> Any:
    """A verdict as people read it, or all of them."""
    return dict(BulkVerdict.choices).get(verdict, verdict) if verdict else _("All")


@register.inclusion_tag("monitoring/parts/begin.html", takes_context=True)
def begin_bulk(
    context: Context,
    name: str,
    filters: Filters | None = None,
    definition: str = "",
    **given: str,
) -> dict[str, Any]:
    """The button that opens the page on which an action on many is begun.

    Args:
        context: of the page.
        name: the action.
        filters: what the list is narrowed to, where it is begun on that.
        definition: of all that is selected, where it is of one.
        given: what else is selected, as parameters of the address.
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
        "why": why or ("" if about else _("Narrow the list first")),
        "address": f"{reverse('monitoring:begin-operation')}?{query}",
        "place": name,
    }


@register.inclusion_tag("monitoring/parts/begin.html", takes_context=True)
def begin_on_events(context: Context, name: str) -> dict[str, Any]:
    """The same for the events that their page shows."""
    filters = EventFilters(verdict=context["tab"])
    if context["looking"]:
        filters = context["filters"]
    return begin_bulk(context, name, None, of="events", **filters.parameters())


@register.simple_tag(takes_context=True)
def begins_at(context: Context) -> str:
    """Where the form that begins an operation could be posted to from anywhere; "" for where the page is."""
    filters: Filters | None = context.get("filters")
    if context.get("selection", "processes") != "processes" or filters is None:
        return ""
    query = urlencode({"action": context["operation"].name, **filters.narrowing()})
    return f"{reverse('monitoring:begin-operation')}?{query}"


@register.simple_tag(takes_context=True)
def not_in_bulk(context: Context, name: str, definition: str) -> str:
    """Why a reader may not do an action to many of a definition; "" if they may."""
    return forbidden_in_bulk(OPERATIONS[name], context["request"].user, definition)


@register.simple_tag
def items_query(verdict: str, after: int | None = None) -> str:
    """The parameters of a page of items."""
    given = {"verdict": verdict, "after": after}
    return f"?{urlencode({name: value for name, value in given.items() if value})}"
