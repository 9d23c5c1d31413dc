from django.http import HttpRequest, HttpResponse

from monitoring.attention.board import board
from monitoring.attention.headline import headline
from monitoring.attention.health import health
from monitoring.attention.running_parts import running_parts
from monitoring.base.access import EVENTS, page_for, reader_scope, visible_definitions
from monitoring.live.sharing import share_answer
from monitoring.views.page import page, shown_rows


@page_for(of=reader_scope)
@share_answer
def index(request: HttpRequest) -> HttpResponse:
    """The first page: problems and their solutions, then all definitions, the most urgent first."""
    now, seen = health(), visible_definitions(request)
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
        parts=running_parts(found, now.machinery) if seen is None else [],
        health=now,
    )
