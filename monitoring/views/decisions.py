from django.http import HttpRequest, HttpResponse

from monitoring.access import of_list, page_for
from monitoring.buttons import Dialog
from monitoring.queries.decisions import decision_page
from monitoring.sharing import shared
from monitoring.views.page import named, page
from orchestrator.engine.operations import OPERATIONS


@page_for(of=of_list)
@shared
def index(request: HttpRequest) -> HttpResponse:
    """Everything that a workflow asks a person to decide."""
    after, definition = request.GET.get("after", ""), named(request)
    dialogs = [Dialog(OPERATIONS["decide"])]
    shown = decision_page(after, definition)
    return page(
        request,
        "decisions",
        page=shown,
        dialogs=dialogs,
        after=after,
        definition=definition,
    )
