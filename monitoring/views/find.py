from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from monitoring.base.access import EVENTS, page_for, reader_scope, visible_definitions
from monitoring.lists.processes.filters import Filters
from monitoring.lists.search_box import Lookup, only_address
from monitoring.views.page import page


@page_for(of=reader_scope)
def find(request: HttpRequest) -> HttpResponse:
    """Redirect to the only match, or show all matches."""
    filters = Filters(q=Filters.from_query(request.GET).q)
    if not filters.q:
        return redirect("monitoring:instances")
    definitions = visible_definitions(request)
    events = definitions is None and request.user.has_perm(EVENTS)
    kinds = Lookup(filters.q, events, definitions).found()
    if place := only_address(kinds):
        return redirect(place)
    return page(request, "find", filters=filters, kinds=kinds)
