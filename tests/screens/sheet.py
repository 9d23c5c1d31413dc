"""All pictures of a page side by side, small, as one."""

from base64 import b64decode
from html import escape
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser

from tests.screens.photographs import LOOKS

SCALE = 0.34
HOW: dict[str, Any] = {"format": "webp", "quality": 60, "captureBeyondViewport": True}
"""Half as large as a JPEG, so that the sheets of all pages can be kept beside the code."""

PAGE = """\
<!doctype html><meta charset=utf-8><title>{name}</title>
<style>
body {{ margin: 12px; background: #888; font: 12px sans-serif; width: max-content }}
h1 {{ font-size: 16px; margin: 0 0 8px }}
div {{ display: flex; gap: 12px; align-items: start; margin-bottom: 12px }}
figure {{ margin: 0 }}
img {{ display: block; zoom: {scale} }}
</style>
<h1>{name}</h1>{rows}
"""


def sheet(browser: Browser, name: str, folder: Path, file: Path) -> None:
    """Puts the pictures of a folder on one sheet, a row for each look.

    Args:
        browser: which lays it out.
        name: of the page.
        folder: with its pictures.
        file: the picture that is written, a WebP.
    """
    rows = "".join(
        f"<div>{''.join(_figure(one) for one in look.names())}</div>" for look in LOOKS
    )
    laid_out = folder / "sheet.html"
    laid_out.write_text(PAGE.format(name=escape(name), scale=SCALE, rows=rows))
    page = browser.new_page(viewport={"width": 1060, "height": 800})
    page.goto(laid_out.as_uri())
    chromium = page.context.new_cdp_session(page)  # Playwright itself writes no WebP
    size = page.evaluate(
        "(({scrollWidth: width, scrollHeight: height}) => ({width, height}))(document.documentElement)"
    )
    clip = {"x": 0, "y": 0, "scale": 1, **size}
    taken = chromium.send("Page.captureScreenshot", {**HOW, "clip": clip})
    file.write_bytes(b64decode(taken["data"]))
    page.close()
    laid_out.unlink()


def _figure(name: str) -> str:
    return f"<figure>{name}<img src='{name}.png'></figure>"
