"""The fixtures that only the tests of this folder share."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.services.site import Site

# A busy machine alone fails no test; what must be quick is measured where it is said so.
expect.set_options(timeout=120_000)


@pytest.fixture
def signed_in(
    transactional_db: None, page: Page, live_site: Site, operator: User
) -> Page:
    """A page whose operator has signed in."""
    page.goto(live_site.link(operator))
    return page


@pytest.fixture
def another_page(signed_in: Page) -> Callable[[str], Page]:
    """Opens an address in another tab of the same operator."""

    def open_page(address: str) -> Page:
        other = signed_in.context.new_page()
        other.goto(address)
        live(other)
        return other

    return open_page


def live(page: Page) -> None:
    """Waits until the page's socket is open."""
    page.wait_for_selector("#live[data-state=live]")
