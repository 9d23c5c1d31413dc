from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from monitoring.access import for_viewers
from monitoring.buttons import Dialog
from monitoring.queries.decisions import decision_page
from monitoring.views.page import page
from monitoring.views.sharing import shared
from orchestrator.engine.operations import OPERATIONS


@require_safe
@for_viewers
@shared
def index(request: HttpRequest) -> HttpResponse:
    """Everything that a workflow asks a person to decide."""
    after = request.GET.get("after", "")
    dialogs = [Dialog(OPERATIONS["decide"])]
    shown = decision_page(after)
    return page(request, "decisions", page=shown, after=after, dialogs=dialogs)
