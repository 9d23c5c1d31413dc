from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict

from monitoring.base.access import EVENTS, page_for
from monitoring.base.requests import is_live
from monitoring.forms.buttons import event_dialogs
from monitoring.lists.events.event_search import (
    KEPT,
    EventFilters,
    event_outcomes,
    search_events,
)
from monitoring.lists.events.event_volume import event_volume
from monitoring.lists.events.events import TABS, event_page, event_tabs
from monitoring.lists.events.possible_processes import (
    event_to_deliver,
    named_processes,
    possible_processes,
)
from monitoring.lists.failures.causes import causes_of_events
from monitoring.lists.failures.failure_marks import handling_of
from monitoring.live.sharing import share_answer
from monitoring.queries.lists import clean_text
from monitoring.views.page import definition_in, page
from orchestrator.models import Verdict
from orchestrator.models.inbox_event import PROBLEMS


@page_for(EVENTS)
@share_answer
def index(request: HttpRequest) -> HttpResponse:
    """Events that no process took, and events that wait for one; or the results of a search."""
    definition = definition_in(request)
    context: dict[str, Any] = {"dialogs": event_dialogs(), "definition": definition}
    if not is_live(request):
        context["volume"] = event_volume(request.GET.get("volume", ""))
        context["kept_query"] = _without_volume(request)
        context |= _delivery(request.GET)
    return page(request, "events", **events_context(request, definition), **context)


def _without_volume(request: HttpRequest) -> str:
    """Return the other parameters of the address, as a prefix of a query string."""
    query = request.GET.copy()
    query.pop("volume", None)
    return f"{query.urlencode()}&" if query else ""


def events_context(
    request: HttpRequest, definition: str = "", size: int = 0
) -> dict[str, Any]:
    """Return the context of the list."""
    query, filters = request.GET, EventFilters.from_query(request.GET)
    before = query.get("before", "")
    looking = bool(filters.parameters()) and "tab" not in query
    tab = "" if looking else query.get("tab", "all")
    shown = (
        search_events(filters, before, size)
        if looking
        else event_page(tab, before, filters.q, definition, size)
    )
    causes = causes_of_events(shown.rows)
    return {
        "page": shown,
        "tab": tab,
        "tabs": event_tabs(definition),
        "filters": filters,
        "looking": looking,
        "on_many": bool(shown.rows)
        and (
            filters.verdict in ("", *KEPT)
            if looking
            else tab in TABS and not definition
        ),
        "verdicts": Verdict.values,
        "outcomes": event_outcomes(shown.rows),
        "near": possible_processes(shown.rows),
        "causes": causes,
        "handling": handling_of(causes.values()),
        "problems": PROBLEMS,
    }


def _delivery(query: QueryDict) -> dict[str, Any]:
    """Return the event for which a process is looked for, the name of the process, and the processes found."""
    event = event_to_deliver(query.get("deliver", ""))
    name = clean_text(query.get("target", ""))
    if event is None:
        return {}
    found = named_processes(event, name) if name else []
    return {"delivering": event, "target": name, "named": found}
