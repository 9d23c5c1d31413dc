from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from monitoring.access import for_viewers
from monitoring.queries.instances import Filters, page_of


@require_safe
@for_viewers
def find(request: HttpRequest) -> HttpResponse:
    """Goes to the one instance that is meant, or to the list of those that could be."""
    filters = Filters.from_query(request.GET)
    found = page_of(Filters(q=filters.q), size=2).rows if filters.q else []
    if len(found) == 1:
        return redirect("monitoring:instance", pk=found[0].pk)
    return redirect(f"{reverse('monitoring:instances')}?{urlencode({'q': filters.q})}")
