from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from monitoring.access import for_viewers
from monitoring.queries.decisions import decision_page
from monitoring.views.page import page


@require_safe
@for_viewers
def index(request: HttpRequest) -> HttpResponse:
    """Everything that a workflow asks a person to decide."""
    after = request.GET.get("after", "")
    return page(request, "decisions", page=decision_page(after), after=after)
