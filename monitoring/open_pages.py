"""Who asks for a page: a browser that shows the answer, or the script of a page that is open."""

from django.http import HttpRequest


def by_script(request: HttpRequest) -> bool:
    """Whether an open page asks, and not a browser that will show the answer."""
    return request.headers.get("HX-Request") == "true"


def is_live(request: HttpRequest) -> bool:
    """Whether an open page asks for what has changed on it."""
    return by_script(request) and "since" in request.GET
