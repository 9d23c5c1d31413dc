from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse

from monitoring.access import of_list, page_for, seen_in
from monitoring.buttons import list_dialogs
from monitoring.open_pages import is_live
from monitoring.queries.waits.filters import DUES, WaitFilters
from monitoring.queries.waits.kinds import KINDS
from monitoring.queries.waits.page import same_waits, tallies, wait_page
from monitoring.sharing import shared
from monitoring.views.page import names_to_choose, page, shown_rows

ACTIONS = ("extend", "acknowledge", "escalate", "assign", "decide")
"""What can be done from the list."""


@page_for(of=of_list)
@shared
def index(request: HttpRequest) -> HttpResponse:
    """Everything that waits, narrowed by what the address says."""
    # Not for an open page, which has them.
    dialogs = partial(list_dialogs, ACTIONS, request.user)
    return page(request, "waits", dialogs=dialogs, **waits_context(request))


def waits_context(request: HttpRequest) -> dict[str, Any]:
    """What the page of waits needs."""
    filters = WaitFilters.from_query(request.GET, request.user)
    after = request.GET.get("after", "")
    # A row that matches no more stays in its place, but never one of what the reader may not see.
    within = "" if seen_in(request) is None else filters.definition
    listing = (
        same_waits(filters, shown_rows(request), after, within)
        if is_live(request)
        else wait_page(filters, after)
    )
    return {
        "filters": filters,
        "listing": listing,
        "tallies": tallies(filters, within),
        "kinds": KINDS,
        "dues": DUES,
        "names": names_to_choose(request),
    }
