from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from monitoring.access import for_event_viewers, for_viewers
from monitoring.buttons import event_dialogs
from monitoring.queries.events import event_page
from monitoring.queries.failures import open_incidents
from monitoring.views.page import named, page
from monitoring.views.sharing import shared


@require_safe
@for_event_viewers
@shared
def index(request: HttpRequest) -> HttpResponse:
    """Events that no process took, and those still waiting for a process to take them."""
    query = request.GET
    shown = event_page(
        query.get("tab", "all"), query.get("before", ""), query.get("q", "")
    )
    return page(request, "events", page=shown, dialogs=event_dialogs())


@require_safe
@for_viewers
@shared
def failures(request: HttpRequest) -> HttpResponse:
    """Everything that has failed, of all definitions or of one."""
    definition = named(request)
    incidents, older = open_incidents(request.GET.get("before", ""), definition)
    context = {"incidents": incidents, "older": older, "definition": definition}
    return page(request, "failures", **context)
