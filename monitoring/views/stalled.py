from typing import Any

from django.http import HttpRequest, HttpResponse

from monitoring.access import of_list, page_for
from monitoring.buttons import Dialog
from monitoring.queries.stalled import stalled_page
from monitoring.sharing import shared
from monitoring.views.page import named, page
from orchestrator.engine.operations import OPERATIONS


@page_for(of=of_list)
@shared
def index(request: HttpRequest) -> HttpResponse:
    """Stalled processes, the reasons, and a button to nudge each."""
    dialogs = [Dialog(OPERATIONS["nudge"])]
    return page(request, "stalled", dialogs=dialogs, **stalled_context(request))


def stalled_context(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the page."""
    definition, after = named(request), request.GET.get("after", "")
    shown = stalled_page(request.user, definition, after)
    return {"page": shown, "definition": definition, "after": after}
