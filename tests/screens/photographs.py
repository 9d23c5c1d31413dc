"""A page in Chromium, as pictures: at three widths, light and dark, and once in Japanese."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Error, Page, Response, sync_playwright

from tests.screens.places import Place
from tests.services import chromium

WIDTHS = (1440, 1024, 390)
HEIGHT = 900
SIZE = "document.documentElement.scroll"
LONGEST = 1800
"""Pixels of a long page that are photographed."""

PATIENCE = 120_000
"""Milliseconds that a page may take; a crowded machine alone ends nothing."""


@dataclass(frozen=True)
class Look:
    """How a page is looked at.

    Args:
        theme: light or dark.
        language: of the browser.
        widths: of its window, in pixels.
    """

    theme: Any
    language: str = "en-GB"
    widths: Sequence[int] = WIDTHS

    def names(self) -> list[str]:
        """What its pictures are called."""
        of_language = "" if self.language == "en-GB" else f"-{self.language}"
        return [f"{width}-{self.theme}{of_language}" for width in self.widths]


LOOKS = (Look("light"), Look("dark"), Look("light", "ja", (1024,)))


@dataclass
class Photographer:
    """Somebody with a camera, who is signed in.

    Args:
        browser: to look with.
        site: the console's address.
        state: who is signed in, as Playwright keeps it.
        complaints: what was wrong with the pages so far.
    """

    browser: Browser
    site: str
    state: Any
    complaints: list[str] = field(default_factory=list)

    def take(self, place: Place, folder: Path) -> None:
        """Photographs one page, each picture into a file of the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for look in LOOKS:
            try:
                with self.page(place, look) as page:
                    self.widths(page, place, look, folder)
            except Error as error:
                self.complaints.append(f"{place.name} ({look.theme}): {error}")

    def widths(self, page: Page, place: Place, look: Look, folder: Path) -> None:
        """Photographs an open page at each width."""
        for width, name in zip(look.widths, look.names(), strict=True):
            page.set_viewport_size({"width": width, "height": HEIGHT})
            self.look_at(page, place, width)
            height = min(LONGEST, max(HEIGHT, page.evaluate(SIZE + "Height")))
            file = folder / f"{name}.png"
            clip: Any = {"x": 0, "y": 0, "width": width, "height": height}
            page.screenshot(path=file, full_page=True, clip=clip)

    @contextmanager
    def page(self, place: Place, look: Look) -> Iterator[Page]:
        """Opens the page, and hears what the browser complains about."""
        context = self.browser.new_context(
            base_url=self.site,
            color_scheme=look.theme,
            locale=look.language,
            storage_state=self.state if place.signed_in else None,
            viewport={"width": look.widths[0], "height": HEIGHT},
        )
        context.set_default_timeout(PATIENCE)
        try:
            page = context.new_page()

            def wrong(what: str) -> None:
                self.complaints.append(f"{place.name} ({look.theme}): {what}")

            def answered(response: Response) -> None:
                if response.status >= 400 and response.status != place.status:
                    wrong(f"{response.status} of {response.url}")

            page.on("pageerror", lambda error: wrong(str(error)))
            page.on("response", answered)
            page.goto(place.address)
            if page.locator("#live").count():
                page.wait_for_selector("#live[data-state=live]")
            if place.click:
                page.locator(place.click).first.click()
            yield page
        finally:
            context.close()

    def look_at(self, page: Page, place: Place, width: int) -> None:
        """Complains about what is wider than the window."""
        wide = page.evaluate(SIZE + "Width")
        if wide > width and not place.name.startswith("admin"):
            self.complaints.append(f"{place.name}: {wide} pixels wide at {width}")


@contextmanager
def photographer(site: str, way_in: str) -> Iterator[Photographer]:
    """A browser in which the person has signed in whom the path lets in.

    Raises:
        NoChromium: there is no browser, and none could be installed.
    """
    path = chromium.installed()  # before Playwright runs, which it asks
    with sync_playwright() as playwright:
        flags = list(chromium.FLAGS)
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        context = browser.new_context(base_url=site)
        context.set_default_timeout(PATIENCE)
        context.new_page().goto(way_in)
        state = context.storage_state()
        context.close()
        yield Photographer(browser, site, state)
        browser.close()
