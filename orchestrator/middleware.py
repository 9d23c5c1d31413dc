"""What every response brings, and what a request that nobody has signed in for gets."""

from collections.abc import Callable
from typing import Any

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

# 'self' in connect-src covers the WebSocket of the same host and port.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    ]
)


class ContentSecurityPolicyMiddleware(MiddlewareMixin):
    """Adds the policy to every response that does not bring a stricter one of its own, as a single drawing does."""

    def process_response(
        self, request: HttpRequest, response: HttpResponse
    ) -> HttpResponse:
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response


class NulMiddleware(MiddlewareMixin):
    """Finds nothing at an address with a NUL, and passes over cookies with one: PostgreSQL takes it in no text.

    A webhook's sender is answered by the webhook, which knows no such source.
    """

    def process_view(self, request: HttpRequest, *view: Any) -> None:
        found = request.resolver_match
        if "\0" in request.path and found and "webhooks" not in found.app_names:
            raise Http404

    def process_request(self, request: HttpRequest) -> None:
        request.COOKIES = {
            name: value for name, value in request.COOKIES.items() if "\0" not in value
        }


class SignInRequiredMiddleware(LoginRequiredMiddleware):
    """Sends whoever has not signed in to the sign-in page, and tells a script so in one word.

    A script cannot show that page. Fetching it would do harm: every answer with a form may bring a new CSRF cookie,
    and would void the form that another tab has open.
    """

    def process_view(
        self, request: HttpRequest, view_func: Any, *arguments: Any
    ) -> HttpResponseBase | None:
        answer = super().process_view(request, view_func, *arguments)
        by_script = "HX-Request" in request.headers
        return HttpResponse(status=401) if answer is not None and by_script else answer


class InOneThreadMiddleware:
    """Has those before it run where the page is computed: by itself each would change threads twice for each request.

    It stands last. Django calls a middleware that can be asynchronous in that way until one behind it cannot.
    """

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)
