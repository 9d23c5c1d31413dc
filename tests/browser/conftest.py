"""The fixtures that only the tests of this folder share."""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from tests.conftest import OPERATOR_MAY, person
from tests.services.site import APPS, Site

logger = logging.getLogger(__name__)

# A busy machine alone fails no test; what must be quick is measured where it is said so.
expect.set_options(timeout=120_000)

NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED"
given_up: list[str] = []
"""Requests of this test that the browser gave up because a network interface of the machine came or went."""

WIDTHS = (1440, 1024, 390)
ACROSS = "document.documentElement.scrollWidth"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run a test of this folder once more where the browser gave up its requests: other tests make interfaces."""
    folder = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(folder):
            item.add_marker(pytest.mark.flaky(reruns=1, condition=network_changed))


def network_changed() -> bool:
    return bool(given_up)


@pytest.fixture(autouse=True)
def nothing_given_up() -> None:
    given_up.clear()


@pytest.fixture(scope="session")
def site_with_apps(
    django_db_setup: None, django_db_blocker: object, valkey: object
) -> Iterator[Site]:
    """Serve the test database with the processes of some apps of the tests beside the examples."""
    os.environ["PROCESSION_APPS"] = APPS
    site = Site()
    site.start()
    del os.environ["PROCESSION_APPS"]
    yield site
    site.stop()


@pytest.fixture(scope="module")
def profile(browser: Browser, live_site: Site) -> Iterator[BrowserContext]:
    """Open a browser profile for the tests of a module, which keeps the site's files; each of them empties it."""
    context = browser.new_context(base_url=live_site.url)
    context.set_default_timeout(120_000)
    tell_errors(context)
    yield context
    context.close()


def tell_errors(context: BrowserContext) -> None:
    """Log what goes wrong in a browser's pages, which the report of a failed test then shows."""
    context.on("weberror", lambda failed: logger.warning("%s", failed.error))

    def no_answer(asked: Request) -> None:
        logger.warning("%s: %s", asked.url, asked.failure)
        if asked.failure == NETWORK_CHANGED:
            given_up.append(asked.url)

    context.on("requestfailed", no_answer)


@pytest.fixture
def page(profile: BrowserContext) -> Iterator[Page]:
    """Open an empty page of a profile in which nobody has signed in; addresses may be relative to the live site."""
    page = profile.new_page()
    yield page
    for each in profile.pages:
        each.close()
    profile.clear_cookies()
    profile.clear_permissions()


@pytest.fixture
def signed_in(
    transactional_db: None, page: Page, live_site: Site, operator: User
) -> Page:
    """A page whose operator has signed in."""
    sign_in(page, live_site, operator)
    return page


def sign_in(page: Page, site: Site, user: User) -> None:
    """Have somebody be signed in in a page's profile, as by the page for that."""
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    value = client.cookies[name].value
    page.context.add_cookies([{"name": name, "value": value, "url": site.url}])


@contextmanager
def opened_by(browser: Browser, site: Site, user: User, **more: Any) -> Iterator[Page]:
    """Give a page of a profile of its own in which somebody has signed in; `more` is told to Playwright."""
    context = browser.new_context(base_url=site.url, **more)
    context.set_default_timeout(120_000)
    tell_errors(context)
    page = context.new_page()
    sign_in(page, site, user)
    yield page
    context.close()


@pytest.fixture
def checked(
    transactional_db: None, browser: Browser, live_site: Site, operator: User
) -> Iterator[Page]:
    """A signed-in page that may be given scripts to run."""
    more = {"bypass_csp": True, "reduced_motion": "reduce"}
    with opened_by(browser, live_site, operator, **more) as page:
        yield page


@pytest.fixture
def without_scripts(
    transactional_db: None, browser: Browser, live_site: Site, operator: User
) -> Iterator[Page]:
    """A signed-in page that runs no scripts."""
    more = {"java_script_enabled": False}
    with opened_by(browser, live_site, operator, **more) as page:
        yield page


@pytest.fixture
def another_page(signed_in: Page) -> Callable[[str], Page]:
    """Opens an address in another tab of the same operator."""

    def open_page(address: str) -> Page:
        other = signed_in.context.new_page()
        other.goto(address)
        live(other)
        return other

    return open_page


@pytest.fixture
def other(signed_in: Page, browser: Browser, live_site: Site) -> Iterator[Page]:
    """The page of a second operator, in a profile of their own."""
    colleague = person("colleague", *OPERATOR_MAY)
    with opened_by(browser, live_site, colleague) as page:
        yield page


def live(page: Page) -> None:
    """Waits until the page's socket is open."""
    page.wait_for_selector("#live[data-state=live]")


def fits(page: Page, widths: Sequence[int] = WIDTHS) -> None:
    """At each width nothing of the page is beside the window."""
    assert too_wide(page, widths) == []


def too_wide(page: Page, widths: Sequence[int] = WIDTHS) -> list[str]:
    """Return at which widths something of the page is beside the window, when it has been loaded at that width."""
    found = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        if page.evaluate(ACROSS) > width:  # so it may be only after a change of width
            page.reload()
            if (across := page.evaluate(ACROSS)) > width:
                found.append(f"{across} pixels instead of {width}")
    return found
