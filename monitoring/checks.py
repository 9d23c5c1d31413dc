"""System checks of the project's settings for the console, each with the lines to add.

monitoring.E001: a middleware is missing. E002: a context processor is missing. W001: the console has no address, or
another view answers there. W002: LOGIN_URL leads to no page. W003: the channel layer does not connect processes, so
open pages learn of changes late. W004: the ASGI application does not exist, or has no socket for open pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

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
ASGI_FILE = """\
import os
from django.core.asgi import get_asgi_application
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "{settings}")
application = get_asgi_application()
"""
URL_LINES = """\
urlpatterns = [path("ops/", include("monitoring.urls")), *urlpatterns]"""
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
    """Check that the console's first page is reached."""
    try:
        address = reverse("monitoring:definitions")
    except NoReverseMatch:
        yield checks.Warning(
            "The console has no address.",
            hint=f"Add to the project's addresses, for example:\n{URL_LINES}",
            id="monitoring.W001",
        )
        return
    if answers := _other_view(address):
        yield checks.Warning(
            f"At {address}, the address of the console, {answers} answers.",
            hint="Let the address of the console stand before the one that takes everything, for example:\n"
            f"{URL_LINES}",
            id="monitoring.W001",
        )


def _other_view(address: str) -> str:
    """Return the view that answers at the console's address; "" for the console's own, and for none."""
    try:
        found = resolve("/" + address.removeprefix(get_script_prefix()))
    except Resolver404:
        return ""
    own = "monitoring" in found.app_names and found.url_name == "definitions"
    return "" if own else found.view_name


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
    if named and (missing := _missing_module(named)):
        first = ASGI_FILE.format(settings=settings.SETTINGS_MODULE)
        yield checks.Warning(
            f"ASGI_APPLICATION names {named}, and there is no module {missing}: open pages look for changes every ten "
            "seconds.",
            hint=f"Create it with these lines:\n{first}{ASGI_LINES}",
            id="monitoring.W004",
        )
    elif named and not _has_socket(named):
        yield checks.Warning(
            f"{named} has no socket for the console: open pages look for changes every ten seconds.",
            hint=f"Add at the end of the module {named.rpartition('.')[0]}:\n{ASGI_LINES}",
            id="monitoring.W004",
        )


def _missing_module(named: str) -> str:
    """Return the module of an application if it does not exist; "" otherwise."""
    module = named.rpartition(".")[0]
    try:
        return "" if module and find_spec(module) else module or named
    except ModuleNotFoundError as error:
        return module if f"{module}.".startswith(f"{error.name}.") else ""
    except Exception:  # noqa: BLE001  the server reports any error in its package
        return ""


def _has_socket(named: str) -> bool:
    from monitoring.routing import has_live_pages  # noqa: PLC0415  only web servers need its imports

    try:
        import_string(named)
    except Exception:  # noqa: BLE001  the server reports any error in it
        return True
    return has_live_pages()
