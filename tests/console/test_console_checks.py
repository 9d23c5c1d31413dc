"""What a project lacks for the console is told with the very lines to add, and with these it lacks nothing."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any
from weakref import WeakSet

import pytest
from django.core.asgi import get_asgi_application
from django.core.checks import CheckMessage, run_checks
from django.urls import clear_url_caches, include, path, set_script_prefix
from pytest_django import Settings

from monitoring import routing
from tests.apps.elsewhere import hidden
from tests.services.cases import cases

pytestmark = pytest.mark.once


def found() -> list[CheckMessage]:
    return [m for m in run_checks() if str(m.id).startswith("monitoring.")]


@pytest.fixture(autouse=True)
def nothing_to_say() -> Iterator[None]:
    assert found() == []
    yield
    assert found() == []


def added(message: CheckMessage, **names: Any) -> dict[str, Any]:
    """What the lines of a hint make of a project's settings."""
    exec(str(message.hint).split("\n", 1)[1], names)  # noqa: S102  our own lines
    return names


@cases("kind", "Session", "Csrf", "Authentication", "")
def test_a_middleware_that_is_missing(kind: str, settings: Settings) -> None:
    settings.MIDDLEWARE = [path for path in settings.MIDDLEWARE if kind not in path]

    [message] = [m for m in found() if m.id == "monitoring.E001" or not kind]

    names = added(message, MIDDLEWARE=list(settings.MIDDLEWARE))
    settings.MIDDLEWARE = names["MIDDLEWARE"]


def test_templates_without_context_processors(settings: Settings) -> None:
    templates = deepcopy(settings.TEMPLATES)
    templates[0]["OPTIONS"]["context_processors"] = []
    settings.TEMPLATES = deepcopy(templates)

    [message] = found()

    assert message.id == "monitoring.E002"
    settings.TEMPLATES = added(message, TEMPLATES=templates)["TEMPLATES"]


def test_a_console_without_an_address(settings: Settings) -> None:
    before = settings.ROOT_URLCONF
    settings.ROOT_URLCONF = "tests.apps.elsewhere.nothing_there"
    settings.LOGIN_URL = "own"

    [message] = found()

    assert message.id == "monitoring.W001"
    assert 'path("ops/", include("monitoring.urls"))' in str(message.hint)
    settings.ROOT_URLCONF, settings.LOGIN_URL = before, "sign-in"


def test_a_console_whose_address_another_view_takes(settings: Settings) -> None:
    """As behind an address of Wagtail's, which takes everything."""
    before = settings.ROOT_URLCONF
    settings.ROOT_URLCONF, settings.LOGIN_URL = "tests.apps.elsewhere.hidden", "/all/"

    [message] = found()

    names = added(message, urlpatterns=hidden.urlpatterns, path=path, include=include)
    assert message.id == "monitoring.W001"
    assert message.msg == (
        "At /ops/, the address of the console, tests.apps.elsewhere.urls.own answers."
    )
    hidden.urlpatterns[:] = names["urlpatterns"]
    clear_url_caches()
    assert found() == []
    settings.ROOT_URLCONF, settings.LOGIN_URL = before, "sign-in"


@cases("module", "tests.apps.elsewhere.no_such", "tests.no_such.asgi")
def test_an_application_whose_module_does_not_exist(
    module: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = settings.ASGI_APPLICATION
    settings.ASGI_APPLICATION = f"{module}.application"

    [message] = found()

    assert message.id == "monitoring.W004"
    assert f"there is no module {module}" in message.msg
    with monkeypatch.context() as other:
        other.setattr(routing, "_made", WeakSet())
        kept = added(message)
        assert routing.has_live_pages()
    assert kept["application"]
    settings.ASGI_APPLICATION = before


@cases("place", "/accounts/login/", "accounts/login", "log-in")
def test_a_way_to_sign_in_that_leads_nowhere(place: str, settings: Settings) -> None:
    settings.LOGIN_URL = place

    [message] = found()

    assert message.id == "monitoring.W002"
    settings.LOGIN_URL = added(message)["LOGIN_URL"]


def test_neither_a_proxys_address_nor_another_site_to_sign_in_nor_what_a_server_tells_lacks(
    settings: Settings,
) -> None:
    set_script_prefix("/branch/")
    try:
        assert found() == []
    finally:
        set_script_prefix("/")
    settings.LOGIN_URL = "https://id.example.org/enter?for=ops"
    settings.ASGI_APPLICATION = "tests.apps.elsewhere.asgi.nothing"
    assert found() == []


def test_an_application_without_the_socket(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ASGI_APPLICATION = "tests.apps.elsewhere.asgi.application"
    with monkeypatch.context() as other:
        other.setattr(routing, "_made", WeakSet())
        [message] = found()
        kept = added(message, application=get_asgi_application())
        assert found() == []

    assert message.id == "monitoring.W004"
    assert "at the end of the module tests.apps.elsewhere.asgi:" in str(message.hint)
    assert kept["application"]


@cases("layers", {}, {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}})
def test_a_layer_that_leads_nowhere(layers: dict[str, Any], settings: Settings) -> None:
    settings.CHANNEL_LAYERS = layers

    [message] = found()

    assert message.id == "monitoring.W003"
    settings.CHANNEL_LAYERS = added(message)["CHANNEL_LAYERS"]
