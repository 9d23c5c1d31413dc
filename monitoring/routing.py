"""The console's WebSocket, at any address of the console, and the turns of its open pages."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import SessionMiddlewareStack
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.urls import Resolver404, get_resolver, resolve
from django.utils.translation import get_language_from_path, override

from monitoring.live.consumers import live_app
from monitoring.live.turns import TurnLimiter, is_live_request
from orchestrator.serving.bodies import AsgiApplication

__all__ = ["has_live_pages", "with_live_pages"]

CONSOLE = "monitoring"
"""The name that `monitoring.urls` gives the addresses of the console."""


def with_live_pages(application: AsgiApplication) -> AsgiApplication:
    """Wrap an ASGI application, so that open pages of the console learn of changes at once.

    Args:
        application: of the project, which answers all other requests.
    """
    _ = get_resolver().url_patterns  # imports all pages now, not at the first request
    made = _WithLivePages(application)
    _made.add(made)
    return made


def has_live_pages() -> bool:
    """Whether this process has wrapped an application."""
    return bool(_made)


class _WithLivePages:
    def __init__(self, application: AsgiApplication) -> None:
        self._application = application
        self._in_turn = TurnLimiter(application)
        self._live = AllowedHostsOriginValidator(SessionMiddlewareStack(live_app))
        self._knows_sockets = not isinstance(application, ASGIHandler)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        elif is_live_request(scope) and _console_route(scope):
            await self._in_turn(scope, receive, send)
        else:
            await self._application(scope, receive, send)

    async def _socket(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if _console_route(scope) == "live":
            await self._live(scope, receive, send)
        elif self._knows_sockets:
            await self._application(scope, receive, send)
        else:
            await send({"type": "websocket.close"})  # before it is open: a 403


_made: WeakSet[_WithLivePages] = WeakSet()


def _console_route(scope: dict[str, Any]) -> str:
    """Return the name of the console's address in a request, under any prefix; "" for another address."""
    path = scope["path"].removeprefix(get_script_prefix(scope))
    try:
        with override(get_language_from_path(path)):  # which may be a part of it
            found = resolve(path)
    except Resolver404:
        return ""
    return str(found.url_name) if found.app_names[-1:] == [CONSOLE] else ""
