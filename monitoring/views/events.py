from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from monitoring.access import for_event_viewers
from monitoring.buttons import event_dialogs
from monitoring.queries.events import event_page
from monitoring.views.page import named, page
from monitoring.views.sharing import shared


@require_safe
@for_event_viewers
@shared
def index(request: HttpRequest) -> HttpResponse:
    """Events that no process took, and those still waiting for a process to take them."""
    query = request.GET
    definition = named(request)
    shown = event_page(
        query.get("tab", "all"),
        query.get("before", ""),
        query.get("q", ""),
        definition,
    )
    context = {"dialogs": event_dialogs(), "definition": definition}
    return page(request, "events", page=shown, **context)
