from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from monitoring.access import for_event_viewers
from monitoring.buttons import event_dialogs
from monitoring.queries.event_search import EventFilters, outcomes, search
from monitoring.queries.events import EventPage, event_page
from monitoring.queries.nearest import nearest
from monitoring.views.page import named, page
from monitoring.views.sharing import shared
from orchestrator.models import Verdict


@require_safe
@for_event_viewers
@shared
def index(request: HttpRequest) -> HttpResponse:
    """Events that no process took, and those still waiting for one; or all that are looked for."""
    definition = named(request)
    context = {"dialogs": event_dialogs(), "definition": definition}
    return page(request, "events", **events_context(request, definition), **context)


def events_context(request: HttpRequest, definition: str = "") -> dict[str, Any]:
    """What the templates of the list need."""
    query, filters = request.GET, EventFilters.from_query(request.GET)
    before, looking = query.get("before", ""), bool(filters) and "tab" not in query
    shown = event_page(query.get("tab", "all"), before, filters.q, definition)
    if looking:
        found = search(filters, before)
        shown = EventPage("", found.rows, found.older, shown.tabs)
    return {
        "page": shown,
        "filters": filters,
        "looking": looking,
        "verdicts": Verdict.values,
        "outcomes": outcomes(shown.rows),
        "near": nearest(shown.rows),
    }
