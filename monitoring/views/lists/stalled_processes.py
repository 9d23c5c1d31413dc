from typing import Any

from django.http import HttpRequest, HttpResponse

from monitoring.base.access import list_scope, page_for, visible_definitions
from monitoring.forms.buttons import Dialog
from monitoring.lists.processes.stalled_processes import stalled_page
from monitoring.live.sharing import share_answer
from monitoring.probes.machinery import machinery
from monitoring.probes.unserved_work import unserved_by_definition
from monitoring.views.page import definition_in, page
from orchestrator.engine.operations import OPERATIONS


@page_for(of=list_scope)
@share_answer
def index(request: HttpRequest) -> HttpResponse:
    """Stalled processes, the reasons, and a button to nudge each."""
    dialogs = [Dialog(OPERATIONS["nudge"])]
    return page(request, "stalled", dialogs=dialogs, **stalled_context(request))


def stalled_context(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the page."""
    definition, after = definition_in(request), request.GET.get("after", "")
    shown = stalled_page(request.user, definition, after)
    seen = visible_definitions(request)
    unserved = [
        work
        for work in unserved_by_definition(machinery())
        if (seen is None or work.definition in seen)
        and definition in ("", work.definition)
    ]
    return {
        "page": shown,
        "unserved": unserved,
        "definition": definition,
        "after": after,
    }
