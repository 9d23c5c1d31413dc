from uuid import UUID

from django.http import HttpRequest, HttpResponse

from monitoring.base.access import page_for, process_scope, visible_definitions
from monitoring.live.sharing import share_answer
from monitoring.process.messages.page import flow_page
from monitoring.views.page import page


@page_for(of=process_scope)
@share_answer
def index(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The messages of a process; with `?key=1` also those of others with its key, `?before=` pages back."""
    together = bool(request.GET.get("key", "")) and visible_definitions(request) is None
    shown = flow_page(pk, request.GET.get("before", ""), together=together)
    return page(request, "messages", page=shown, instance=shown.instance)
