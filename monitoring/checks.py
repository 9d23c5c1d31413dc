"""System checks of the project's settings for the console, each with the lines to add.

monitoring.E001: a middleware is missing. E002: a context processor is missing. W001: the console has no address. W002:
LOGIN_URL leads to no page. W003: the channel layer does not connect processes, so open pages learn of changes late.
W004: the ASGI application has no socket for open pages.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags
from django.middleware.csrf import CsrfViewMiddleware
from django.shortcuts import resolve_url
from django.template import engines
from django.template.backends.django import DjangoTemplates
from django.urls import NoReverseMatch, Resolver404, get_script_prefix, resolve, reverse
from django.utils.module_loading import import_string

from orchestrator.checking.settings_checks import make_check

MIDDLEWARE = (SessionMiddleware, CsrfViewMiddleware, AuthenticationMiddleware)
PROCESSORS = (
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
)
ASGI_LINES = """\
from monitoring.routing import with_live_pages
application = with_live_pages(application)"""
LAYER_LINES = """\
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [{"address": "redis://127.0.0.1:6379/0", "socket_timeout": None}]},
    },
}"""


def connect() -> None:
    """Register the checks."""
    for found, tag in (
        (_middleware, "monitoring"),
        (_channel_layer, "monitoring"),
        (_templates, Tags.templates),
        (_console, Tags.urls),
        (_sign_in_page, Tags.urls),
        (_socket, Tags.urls),
    ):
        checks.register(make_check(found), tag)


def _middleware() -> Iterator[CheckMessage]:
    """Check that people can sign in, and that forms are protected."""
    there = [import_string(path) for path in settings.MIDDLEWARE]
    missing = [
        f"{wanted.__module__}.{wanted.__qualname__}"
        for wanted in MIDDLEWARE
        if not any(isinstance(one, type) and issubclass(one, wanted) for one in there)
    ]
    if missing:
        lines = "\n".join(f'MIDDLEWARE += ["{path}"]' for path in missing)
        yield Error(
            f"MIDDLEWARE lacks {', '.join(missing)}.",
            hint=f"The console needs to know who looks at it. Add to the settings, in this order:\n{lines}",
            id="monitoring.E001",
        )


def _templates() -> Iterator[CheckMessage]:
    """Check that the console's templates have their context processors."""
    of_django = [one for one in engines.all() if isinstance(one, DjangoTemplates)]
    there = of_django[0].engine.context_processors if of_django else []
    if missing := [path for path in PROCESSORS if path not in there]:
        lines = "\n".join(
            f'TEMPLATES[0]["OPTIONS"]["context_processors"] += ["{path}"]'
            for path in missing
        )
        yield Error(
            f"TEMPLATES lack the context processors {', '.join(missing)}.",
            hint=f"Add to the settings:\n{lines}",
            id="monitoring.E002",
        )


def _console() -> Iterator[CheckMessage]:
    try:
        reverse("monitoring:definitions")
    except NoReverseMatch:
        yield checks.Warning(
            "The console has no address.",
            hint="Add to the project's addresses, for example:\n"
            'urlpatterns += [path("ops/", include("monitoring.urls"))]',
            id="monitoring.W001",
        )


def _sign_in_page() -> Iterator[CheckMessage]:
    if not _is_page(settings.LOGIN_URL):
        yield checks.Warning(
            f"LOGIN_URL is {settings.LOGIN_URL}, where there is nothing: who has not signed in is sent there.",
            hint="Say in the settings where people sign in; in the admin they can:\n"
            'LOGIN_URL = "admin:login"',
            id="monitoring.W002",
        )


def _is_page(url: str) -> bool:
    """Whether an address or a name leads to a page of the project; addresses of other sites count as pages."""
    try:
        place = resolve_url(url)
        if "://" not in place:
            resolve("/" + place.removeprefix(get_script_prefix()).partition("?")[0])
    except (NoReverseMatch, Resolver404):
        return False
    return True


def _channel_layer() -> Iterator[CheckMessage]:
    """Check that changes reach the pages of other processes."""
    layers = getattr(settings, "CHANNEL_LAYERS", None) or {}
    backend = str(layers.get("default", {}).get("BACKEND", ""))
    if not backend or "InMemory" in backend:
        yield checks.Warning(
            "CHANNEL_LAYERS leads from no process to another: open pages do not hear of what workers do, and look for "
            "changes every ten seconds.",
            hint=f"Add to the settings, with the address of your Redis:\n{LAYER_LINES}",
            id="monitoring.W003",
        )


def _socket() -> Iterator[CheckMessage]:
    """Check that the application in the settings has the console's socket."""
    named = getattr(settings, "ASGI_APPLICATION", None)
    if named and not _has_socket(named):
        yield checks.Warning(
            f"{named} has no socket for the console: open pages look for changes every ten seconds.",
            hint=f"Add at the end of the module {named.rpartition('.')[0]}:\n{ASGI_LINES}",
            id="monitoring.W004",
        )


def _has_socket(named: str) -> bool:
    from monitoring.routing import has_live_pages  # noqa: PLC0415  only web servers need its imports

    try:
        import_string(named)
    except Exception:  # noqa: BLE001  the server reports any error in it
        return True
    return has_live_pages()
