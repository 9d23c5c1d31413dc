from django.http import HttpRequest, HttpResponse

from monitoring.access import EVENTS, of_all_seen, page_for, seen_in
from monitoring.queries.board import board
from monitoring.queries.headline import headline
from monitoring.queries.health import health
from monitoring.running import parts
from monitoring.sharing import shared
from monitoring.views.page import page, shown_rows


@page_for(of=of_all_seen)
@shared
def index(request: HttpRequest) -> HttpResponse:
    """The first page: problems and their solutions, then all definitions, the most urgent first."""
    now, seen = health(), seen_in(request)
    found = board(now, events=request.user.has_perm(EVENTS), seen=seen)
    # Rows of an open page keep their places, so that none moves while a person clicks.
    places = {name: place for place, name in enumerate(shown_rows(request))}
    return page(
        request,
        "home",
        board=found,
        definitions=sorted(
            found.definitions, key=lambda row: places.get(row.name, len(places))
        ),
        headline=headline(found.problems, found.largest, request.user),
        parts=parts(found, now.machinery) if seen is None else [],
        health=now,
    )
