"""What a style sheet says is understood by a real browser: a misspelt property or value would be passed over."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.lint.__main__ import ROOT, sources
from tests.lint.stylesheets import declarations
from tests.lint.syntax import parsed

pytestmark = pytest.mark.once

SHEETS = [path for path in sources(ROOT / "static/monitoring") if path.suffix == ".css"]


def unknown(browser: Browser, text: str) -> list[list[str]]:
    """The declarations, as property and value, that the browser does not understand."""
    said = [[name, value] for _, name, value in declarations(parsed(text, ".css"))]
    page = browser.new_page()
    try:
        found: list[list[str]] = page.evaluate(
            "(said) => said.filter(([name, value]) => !CSS.supports(name, value.replace('!important', '')))",
            said,
        )
    finally:
        page.close()
    return found


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.stem)
def test_a_browser_understands_every_declaration(browser: Browser, sheet: Path) -> None:
    assert unknown(browser, sheet.read_text()) == []


def test_a_misspelt_property_or_value_would_be_noticed(browser: Browser) -> None:
    text = "a { colour: red; color: rde; color: var(--ink); gap: 4px }"

    assert unknown(browser, text) == [["colour", "red"], ["color", "rde"]]
