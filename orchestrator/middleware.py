"""What every response brings, and what a request that nobody has signed in for gets."""

import gzip
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from asgiref.sync import markcoroutinefunction
from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
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


TAKES_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
"""An Accept-Encoding that allows it."""

WEAK = "W/"
"""Before a tag that says the same of a file and of what it is compressed to."""

COMPRESSIBLE = ("text/", "image/svg")
"""How the types of files begin that become smaller."""


class CompressedFilesMiddleware:
    """Sends style sheets and scripts compressed: on a phone they are what the first page waits for.

    Pages are not. Whoever reads their length while they are sent could find out what they say, with words of his own
    in the address (BREACH, 2013); files say the same to everybody. Django's own compresses each piece of a file that
    is sent asynchronously by itself, of which some clients read the first.
    """

    sync_capable = False
    async_capable = True

    def __init__(
        self, get_response: Callable[[HttpRequest], Awaitable[HttpResponseBase]]
    ) -> None:
        self._get_response = get_response
        markcoroutinefunction(self)

    async def __call__(self, request: HttpRequest) -> HttpResponseBase:
        known = request.headers.get("If-None-Match", "")
        if known.startswith(WEAK) and _in_files(request):
            # As this has said it; the file's own is what the answer of before is compared with.
            request.META["HTTP_IF_NONE_MATCH"] = known.removeprefix(WEAK)
        response = await self._get_response(request)
        if not _is_file(request, response):
            return response
        patch_vary_headers(response, ["Accept-Encoding"])
        if not TAKES_GZIP.search(request.headers.get("Accept-Encoding", "")):
            return response
        pieces: Any = response
        content = b"".join([piece async for piece in pieces])
        response.close()
        packed = HttpResponse(_compressed(content), headers=dict(response.headers))
        packed.headers["Content-Encoding"] = "gzip"
        packed.headers["Content-Length"] = str(len(packed.content))
        if tag := packed.headers.get("ETag"):
            packed.headers["ETag"] = WEAK + tag.removeprefix(WEAK)
        return packed


def _in_files(request: HttpRequest) -> bool:
    return request.path.startswith(str(settings.STATIC_URL))


def _is_file(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Whether it is the whole of a static file that becomes smaller."""
    return (
        request.method == "GET"
        and _in_files(request)
        and response.status_code == HTTPStatus.OK
        and response.streaming
        and response.headers.get("Content-Type", "").startswith(COMPRESSIBLE)
    )


@lru_cache(200)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


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
