"""What operators do most, by keyboard and on paper, also in the Firefox of this machine, where there is one."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Playwright

from tests.apps.every_construct.fixtures import helpdesk
from tests.browser.test_by_keyboard import (
    counted,
    test_a_decision_is_taken_by_keyboard_alone,
    test_a_group_of_failures_is_tried_again_by_keyboard_alone,
    test_a_process_is_found_and_paused_by_keyboard,
    test_an_event_is_sent_to_a_process_of_the_list_by_keyboard,
    test_one_process_that_has_failed_is_retried_by_keyboard,
)
from tests.browser.test_on_paper import (
    test_a_printed_process_has_its_picture_and_nothing_to_press,
)
from tests.services.firefox import behind_proxy, firefox
from tests.services.site import live_site

__all__ = [
    "counted",
    "helpdesk",
    "live_site",
    "test_a_decision_is_taken_by_keyboard_alone",
    "test_a_group_of_failures_is_tried_again_by_keyboard_alone",
    "test_a_printed_process_has_its_picture_and_nothing_to_press",
    "test_a_process_is_found_and_paused_by_keyboard",
    "test_an_event_is_sent_to_a_process_of_the_list_by_keyboard",
    "test_one_process_that_has_failed_is_retried_by_keyboard",
]

FIREFOX = firefox()

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.once,
    pytest.mark.usefixtures("helpdesk"),
    pytest.mark.skipif(FIREFOX is None, reason="no Firefox is installed here"),
]


@pytest.fixture(scope="module")
def browser(
    playwright: Playwright, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browser]:
    """Run Firefox in the place of Chromium, as its users have it."""
    path = behind_proxy(FIREFOX or "", tmp_path_factory.mktemp("firefox"))
    browser = playwright.firefox.launch(channel="moz-firefox", executable_path=path)
    yield browser
    browser.close()
