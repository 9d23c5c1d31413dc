"""A real page in Chromium, with the times at which its diagram shows a commit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from pathlib import Path
from uuid import UUID

from playwright.sync_api import sync_playwright

from bench.sockets import Told
from tests.services import chromium

MOVED = """() => performance.getEntriesByName("highlight").map(mark =>
    [(performance.timeOrigin + mark.startTime) / 1000, mark.detail.id, mark.detail.revision])"""


@dataclass(frozen=True)
class RealPage:
    """A process's page in a browser, in a process of its own.

    Args:
        site: the address of the web server.
        cookie: who looks.
        process: the process's id.
        file: the file for the times at which its diagram moved.
        open: set when it is live.
        over: set when it must end.
    """

    site: str
    cookie: str
    process: str
    file: Path
    open: Event
    over: Event

    def run(self) -> None:
        """Keep the page open until `over` is set, then write the file."""
        name, _, value = self.cookie.partition("=")
        path = chromium.installed()  # before Playwright runs, which it asks
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=path, args=list(chromium.FLAGS)
            )
            page = browser.new_page()
            page.context.add_cookies([{"name": name, "value": value, "url": self.site}])
            page.goto(f"{self.site}/processes/{self.process}/")
            page.wait_for_selector("#live[data-state=live]")
            self.open.set()
            while not self.over.is_set():
                page.wait_for_timeout(100)
            part = self.file.with_suffix(".part")
            part.write_text(json.dumps(page.evaluate(MOVED)))
            part.rename(self.file)
            browser.close()

    def told(self) -> list[Told]:
        """Return when its diagram showed which revision."""
        read = json.loads(self.file.read_text())
        return [Told(0, at, UUID(id), revision) for at, id, revision in read]
