from uuid import UUID

from django.http import HttpRequest, HttpResponse

from monitoring.access import of_process, page_for, seen_in
from monitoring.queries.flow.page import flow_page
from monitoring.sharing import shared
from monitoring.views.page import page


@page_for(of=of_process)
@shared
def index(request: HttpRequest, pk: UUID) -> HttpResponse:
    """What a process was sent and sends; with `?key=1` also what others of its key do, `?before=` pages back."""
    together = bool(request.GET.get("key", "")) and seen_in(request) is None
    shown = flow_page(pk, request.GET.get("before", ""), together=together)
    return page(request, "messages", page=shown, instance=shown.instance)
