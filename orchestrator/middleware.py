"""The header that confines a page to what this site serves."""

from django.http import HttpRequest, HttpResponse
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
