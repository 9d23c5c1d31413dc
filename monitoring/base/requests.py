"""The sender of a request: a browser that shows the answer, or the script of an open page."""

from django.http import HttpRequest


def is_from_script(request: HttpRequest) -> bool:
    """Whether the script of an open page sent the request."""
    return request.headers.get("HX-Request") == "true"


def is_live(request: HttpRequest) -> bool:
    """Whether an open page asks for its changed parts."""
    return is_from_script(request) and "since" in request.GET
