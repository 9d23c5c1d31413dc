"""The API: functions with an address and a method, from which django-ninja makes routes and description."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import URLPattern, re_path
from django.utils.translation import gettext as _
from ninja import NinjaAPI
from ninja.errors import ValidationError

from monitoring.api.access import Token
from monitoring.api.answers import NotAnswered, Renderer, refusal_response
from monitoring.api.bodies import read_program_data
from monitoring.api.parameters import parameter_refusal
from orchestrator.missing_tables import MIGRATE, lacks_tables


class Api(NinjaAPI):
    """Answers with JSON; a failed call gets a code and a reason."""

    def get_content_type(self) -> str:
        return str(self.renderer.media_type)

    def get_openapi_operation_id(self, operation: Any) -> str:
        return str(operation.view_func.__name__)

    def on_exception(self, request: HttpRequest, exc: Any) -> HttpResponse:
        """Return the refusal for an error. Unexpected errors are raised again, for the project's own handlers."""
        refusal = _refusal(exc)
        if refusal is None:
            raise exc
        return refusal_response(request, refusal)


def _refusal(error: Exception) -> NotAnswered | None:
    if isinstance(error, NotAnswered):
        return error
    if isinstance(error, ValidationError):
        return parameter_refusal(error)
    if isinstance(error, Http404):
        return NotAnswered(404, "not_found", _("There is nothing at this address."))
    if isinstance(error, PermissionDenied):
        return NotAnswered(403, "forbidden", _("Your account may not do this."))
    if isinstance(error, DatabaseError) and lacks_tables(error):
        return NotAnswered(503, "no_tables", MIGRATE)
    return None


api = Api(
    title="Procession",
    description="What people do in the console, as calls for programs.",
    urls_namespace="monitoring",
    openapi_url=None,
    renderer=Renderer(),
)

READING, ACTING = "What is asked", "What is done"
"""The chapters of the description."""

RouteDecorator = Callable[[Callable[..., Any]], Callable[..., Any]]

PATHS: dict[str, str] = {}
"""The path of each action's route below the API, by the name of the route."""


def get(path: str, name: str, response: Any, *more: str, **rest: Any) -> RouteDecorator:
    """Make a function the answer to GET at a path.

    Args:
        path: below the API.
        name: of the route.
        response: the class of the answer.
        more, rest: as of `post`.
    """
    rest |= {"auth": Token(*more, of=rest.pop("of", None)), "tags": [READING]}
    return api.get(path, url_name=name, response=response, **rest)


def post(path: str, name: str, *more: str, **rest: Any) -> RouteDecorator:
    """Make a function the answer to POST at a path. `descriptions` describes it with its actions.

    Args:
        path: below the API.
        name: of the route.
        more: permissions that are needed besides the one to view processes.
        rest: `of`, the definitions of the path, and further arguments of django-ninja.
    """
    PATHS[name] = path
    rest = {"include_in_schema": False, "tags": [ACTING], **rest}
    rest["auth"] = Token(*more, of=rest.pop("of", None))
    return api.post(path, url_name=name, **rest)


def read_request_body(view: Callable[..., Any]) -> Callable[..., Any]:
    """Give a view the body of its request as `POST`."""

    @wraps(view)
    def posted(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method != "GET":
            request.POST = read_program_data(request)  # type: ignore[assignment]  # forms take any mapping
        return view(request, *args, **kwargs)

    return posted


api.add_decorator(read_request_body)


NOTHING = "api-nothing"


def not_found(request: HttpRequest, path: str) -> None:
    """Answer an address that no other route has."""
    raise Http404


def api_patterns() -> list[URLPattern]:
    """Return the routes; the functions of all of them must have been imported."""
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    hidden: dict[str, Any] = {
        "url_name": NOTHING,
        "include_in_schema": False,
        "auth": Token(),
    }
    api.api_operation(methods, "{path:path}", **hidden)(not_found)
    found, _app, _namespace = api.urls
    routes = [_answer_programs(one) for one in found if isinstance(one, URLPattern)]
    # A path converter takes no line feed.
    [other] = (one.callback for one in routes if one.name == NOTHING)
    return [*routes, re_path(r"^(?P<path>[\s\S]+)$", other, name=NOTHING)]


def _answer_programs(pattern: URLPattern) -> URLPattern:
    """Return the route with a view that needs no session, answers HEAD too, and forbids caching."""
    view = pattern.callback

    @login_not_required
    @wraps(view)
    def answering(request: HttpRequest, **parts: Any) -> HttpResponse:
        asked = request.method
        request.method = "GET" if asked == "HEAD" else asked
        response: HttpResponse = view(request, **parts)
        if isinstance(response, HttpResponseNotAllowed):
            response = _not_allowed(request, response.headers["Allow"].split(", "))
        request.method = asked
        response.headers["Cache-Control"] = "no-store"
        return response

    return URLPattern(pattern.pattern, answering, pattern.default_args, pattern.name)


def _not_allowed(request: HttpRequest, methods: list[str]) -> HttpResponse:
    """Return the answer to a method that an address does not have; a request without access is refused first."""
    allowed = sorted([*methods, "HEAD"] if "GET" in methods else methods)
    said = _("This address is asked by other methods.")
    try:
        Token()(request)
        error = NotAnswered(
            405, "method_not_allowed", said, {"Allow": ", ".join(allowed)}
        )
    except (NotAnswered, PermissionDenied, DatabaseError) as refusal:
        return api.on_exception(request, refusal)
    return refusal_response(request, error)
