from django.http import HttpRequest, HttpResponse

from monitoring.base.access import list_scope, page_for
from monitoring.forms.buttons import Dialog
from monitoring.lists.waits.decisions import decision_page
from monitoring.live.sharing import share_answer
from monitoring.views.page import definition_in, page
from orchestrator.engine.operations import OPERATIONS


@page_for(of=list_scope)
@share_answer
def index(request: HttpRequest) -> HttpResponse:
    """Everything that a workflow asks a person to decide."""
    after, definition = request.GET.get("after", ""), definition_in(request)
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
