"""Middleware: security headers, sign-in, and compressed files."""

import gzip
import logging
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from asgiref.sync import markcoroutinefunction
from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.core.exceptions import ValidationError
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin
from django.views.defaults import page_not_found

log = logging.getLogger(__name__)

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
    """Adds the policy to each response without one of its own; a single drawing has a stricter one."""

    def process_response(
        self, request: HttpRequest, response: HttpResponse
    ) -> HttpResponse:
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response


UNTAKEN = (DataError, OverflowError, ValidationError, ValueError)
"""The errors for a key or a filter that a column cannot take."""


class NulMiddleware(MiddlewareMixin):
    """Answers 404 to an address with a NUL, and drops cookies with one: PostgreSQL stores no NUL in a text.

    The view of webhooks answers its own addresses, and the console its own parameters. Django's administration gives
    keys and filters to the database as they are: other values that it cannot take are answered with 404 too.
    """

    def process_view(self, request: HttpRequest, *view: Any) -> None:
        found = request.resolver_match
        apps = found.app_names if found else ["webhooks"]
        if "\0" in request.path and "webhooks" not in apps:
            raise Http404
        if "admin" in apps and "%00" in request.META["QUERY_STRING"]:
            raise Http404

    def process_exception(
        self, request: HttpRequest, error: Exception
    ) -> HttpResponse | None:
        found = request.resolver_match
        reads = request.method in ("GET", "HEAD") and isinstance(error, UNTAKEN)
        if reads and found and "admin" in found.app_names:
            log.warning("%r is answered with 404", request.path, exc_info=error)
            return page_not_found(request, error)
        return None

    def process_request(self, request: HttpRequest) -> None:
        request.COOKIES = {
            name: value for name, value in request.COOKIES.items() if "\0" not in value
        }


class SignInRequiredMiddleware(LoginRequiredMiddleware):
    """Redirects a request without a user to the sign-in page, and answers 401 to a script.

    A script cannot show that page, and must not fetch it: an answer with a form may bring a new CSRF cookie, which
    voids the form of another tab.
    """

    def process_view(
        self, request: HttpRequest, view_func: Any, *arguments: Any
    ) -> HttpResponseBase | None:
        answer = super().process_view(request, view_func, *arguments)
        by_script = "HX-Request" in request.headers
        return HttpResponse(status=401) if answer is not None and by_script else answer


TAKES_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
"""An Accept-Encoding that allows gzip."""

WEAK = "W/"
"""The prefix of a weak ETag, which a file shares with its compressed form."""

COMPRESSIBLE = ("text/", "image/svg")
"""The beginnings of the content types that compression makes smaller."""


class CompressedFilesMiddleware:
    """Compresses style sheets and scripts, which the first page waits for on a phone.

    Pages stay uncompressed: an attacker who measures the length of a page, and puts words into its address, could guess
    its content (BREACH, 2013). Files are the same for everybody. Django's GZipMiddleware compresses each chunk of an
    asynchronous response by itself, and some clients read the first chunk only.
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
            # This middleware made the tag weak; the view compares it with the file's own tag.
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
    """Return whether a response is a whole static file that compression makes smaller."""
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
    """Makes the middleware before it run in the view's thread: otherwise each would switch threads twice in a request.

    It stands last: Django runs a middleware asynchronously if it and the next one can be asynchronous.
    """

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self._get_response(request)
