"""A phone in Chromium: slow processor, slow line, small screen; it measures the first paint of a page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.services import chromium

SLOWER = 4
"""The factor by which the processor is slower than this machine's."""
ROUND_TRIP_MS = 150
DOWN_BYTES, UP_BYTES = 1_600_000 // 8, 750_000 // 8
"""A second, over the line: that and the factor are those of a usual phone in Lighthouse, which measures pages."""

SCREEN = {"width": 390, "height": 844}
PAINTED = (
    """() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime"""
)


@dataclass(frozen=True)
class Phone:
    """A phone that opens one page again and again, in a process of its own.

    Args:
        site: the address of the web server.
        cookie: who looks.
        path: the path of the page.
        shows: a selector of what the page must show.
        count: how often a new visitor opens it, each of whom then opens it once more.
        file: the file for the measured times.
    """

    site: str
    cookie: str
    path: str
    shows: str
    count: int
    file: Path

    def run(self) -> None:
        """Open the page so often, then write the file."""
        path = chromium.installed()  # before Playwright runs, which it asks
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=path, args=list(chromium.FLAGS)
            )
            taken = [self._opened(browser) for _ in range(self.count)]
            browser.close()
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps(taken))
        part.rename(self.file)

    def painted(self) -> list[tuple[float, float]]:
        """Return the milliseconds to the first paint: of each first visit, and of the second one."""
        return [(first, again) for first, again in json.loads(self.file.read_text())]

    def _opened(self, browser: Browser) -> tuple[float, float]:
        name, _, value = self.cookie.partition("=")
        context = browser.new_context(viewport=SCREEN, is_mobile=True)  # type: ignore[arg-type]  # a size
        context.add_cookies([{"name": name, "value": value, "url": self.site}])
        page = context.new_page()
        slow_down(page)
        first, again = self._paint(page), self._paint(page)
        context.close()
        return first, again

    def _paint(self, page: Page) -> float:
        page.goto(self.site + self.path)
        page.wait_for_selector(self.shows)
        return float(page.wait_for_function(PAINTED).json_value())


def slow_down(page: Page) -> None:
    """Give the page the processor and the line of a phone."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    session.send("Network.enable")
    session.send(
        "Network.emulateNetworkConditions",
        {
            "offline": False,
            "latency": ROUND_TRIP_MS,
            "downloadThroughput": DOWN_BYTES,
            "uploadThroughput": UP_BYTES,
        },
    )
