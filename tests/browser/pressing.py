"""What a person does on a page: opens it, presses buttons that ask for a reason, and sends what they ask."""

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import live


def opened(page: Page, address: object) -> None:
    """Open a page, and wait until it is live: its address, or a process, or an order for that of its process."""
    key = getattr(address, "process_id", None) or getattr(address, "pk", None)
    page.goto(f"/processes/{key}/" if key else str(address))
    live(page)
    page.evaluate("window.loadedOnce = true")


def stayed(page: Page) -> None:
    """The page has not been loaded again since it was opened."""
    assert page.evaluate("window.loadedOnce") is True


def asked(page: Page, action: str, reason: str = "", button: str = "") -> Locator:
    """Open the dialog of an action, by its own button or another one, and write the reason; nothing is sent yet."""
    page.click(button or f"#{action}-button")
    dialog = page.locator(f"#{action}-dialog")
    expect(dialog).to_be_visible()
    if reason:
        dialog.locator("[name=reason]").fill(reason)
    return dialog


def submit(dialog: Locator) -> Locator:
    return dialog.locator("button[type=submit]")


def press(page: Page, action: str, reason: str = "", button: str = "") -> Locator:
    """Open the dialog of an action, and send it."""
    dialog = asked(page, action, reason, button)
    submit(dialog).click()
    return dialog


def current(page: Page, step: str) -> None:
    """Wait until the picture has the process in this step."""
    expect(page.locator(f"#n_{step}.is-current")).to_be_visible()
