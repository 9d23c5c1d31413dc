from django.http import HttpRequest

from monitoring.open_pages import is_live
from monitoring.queries.instances.filters import Filters
from monitoring.queries.instances.pages import PAGE, ListPage, page_of, same_rows
from monitoring.views.page import shown_rows


def listing(request: HttpRequest, filters: Filters, size: int = PAGE) -> ListPage:
    """Return a page of the list, or for an open page its own rows."""
    before = request.GET.get("before", "")
    if is_live(request):
        return same_rows(filters, shown_rows(request), size, before)
    return page_of(filters, before, size)
