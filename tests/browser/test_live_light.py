"""The light of an open page says what is so: when it last had an answer, and whether it hears of changes."""

from datetime import time
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Browser, Page, Route, expect

from monitoring.views.page import UNHEARD
from tests.browser.conftest import live, opened_by
from tests.services.site import Site

pytestmark = pytest.mark.django_db(transaction=True)

FAR = "Pacific/Auckland"
LIVE_PARTS = "**/processes/?*since=*"


def unheard(route: Route) -> None:
    answer = route.fetch()
    route.fulfill(response=answer, headers={**answer.headers, UNHEARD: "1"})


def test_a_page_that_hears_of_nothing_says_that_it_looks_again(signed_in: Page) -> None:
    signed_in.route(LIVE_PARTS, unheard)
    signed_in.goto("/processes/")
    expect(signed_in.locator("#live")).to_have_text("Looks again every 10 s")
    signed_in.unroute(LIVE_PARTS)
    signed_in.evaluate("window.dispatchEvent(new Event('online'))")
    expect(signed_in.locator("#live")).to_have_text("Live")


def test_since_when_a_page_is_stale_is_said_in_the_time_zone_of_the_site(
    browser: Browser, live_site: Site, viewer: User
) -> None:
    with opened_by(browser, live_site, viewer, timezone_id=FAR) as page:
        page.goto("/processes/")
        live(page)
        page.route(LIVE_PARTS, lambda route: route.abort())
        page.evaluate("window.dispatchEvent(new Event('online'))")
        light = page.locator("#live")
        expect(light).to_contain_text("Stale since")
        said = light.inner_text().removeprefix("Stale since ")
    site = timezone.now().astimezone(ZoneInfo(settings.TIME_ZONE))
    told = time.fromisoformat(said)
    away = abs(site.hour * 60 + site.minute - told.hour * 60 - told.minute)
    assert min(away, 24 * 60 - away) < 30
