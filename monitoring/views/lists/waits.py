from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse

from monitoring.base.access import list_scope, page_for, visible_definitions
from monitoring.base.requests import is_live
from monitoring.forms.buttons import list_dialogs
from monitoring.lists.waits.filters import DUES, WaitFilters
from monitoring.lists.waits.kinds import KINDS
from monitoring.lists.waits.page import refresh_waits, wait_page, wait_tallies
from monitoring.live.sharing import share_answer
from monitoring.views.page import names_to_choose, page, shown_rows

ACTIONS = ("extend", "acknowledge", "escalate", "assign", "decide")
"""The actions of the list."""


@page_for(of=list_scope)
@share_answer
def index(request: HttpRequest) -> HttpResponse:
    """All waits, filtered by the address."""
    # A callable, since an open page has them already.
    dialogs = partial(list_dialogs, ACTIONS, request.user)
    return page(request, "waits", dialogs=dialogs, **waits_context(request))


def waits_context(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the page."""
    filters = WaitFilters.from_query(request.GET, request.user)
    after = request.GET.get("after", "")
    # A row that no longer matches keeps its place, unless the reader may not see it.
    within = "" if visible_definitions(request) is None else filters.definition
    listing = (
        refresh_waits(filters, shown_rows(request), after, within)
        if is_live(request)
        else wait_page(filters, after)
    )
    return {
        "filters": filters,
        "listing": listing,
        "tallies": wait_tallies(filters, within),
        "kinds": KINDS,
        "dues": DUES,
        "names": names_to_choose(request),
    }
