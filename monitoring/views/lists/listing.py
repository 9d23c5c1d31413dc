from django.http import HttpRequest

from monitoring.base.requests import is_live
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import PAGE, ListPage, process_page, refresh_rows
from monitoring.views.page import shown_rows


def listing(request: HttpRequest, filters: Filters, size: int = PAGE) -> ListPage:
    """Return a page of the list, or for an open page its own rows."""
    before = request.GET.get("before", "")
    if is_live(request):
        return refresh_rows(filters, shown_rows(request), size, before)
    return process_page(filters, before, size)
