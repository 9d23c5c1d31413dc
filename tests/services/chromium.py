"""Finds a real Chromium, and installs one where there is none."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.services.words import words

SHELL = "chromium-headless-shell"
"""Chromium without windows, which takes a fraction of the computing: it is preferred."""

NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = words("""
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync
""")
REMEDY = "No Chromium: install it (apt-get install chromium, or python -m playwright install chromium) and start again."


class NoChromium(Exception):
    """No Chromium: install one with `apt-get install chromium` or `python -m playwright install chromium`."""


def chromium() -> Path | None:
    """Return the path of an installed Chromium: the system's, one on the PATH, or Playwright's; None without any."""
    for name in NAMES:
        usual = Path("/usr/bin") / name
        if usual.exists():
            return usual
        if found := shutil.which(name):
            return Path(found)
    return of_playwright()


def of_playwright() -> Path | None:
    """Return the Chromium that Playwright has downloaded; None if it has not."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return path if path.exists() else None


@cache
def installed() -> Path:
    """Return the path of Chromium; install one if there is none, once if several runs need it.

    It may start Playwright to ask it, and so is called before Playwright runs in this process.

    Raises:
        NoChromium: that did not work.
    """
    if path := chromium():
        return path
    lock = Path(tempfile.gettempdir()) / f"procession-chromium-{os.geteuid()}.lock"
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return chromium() or install()


def install() -> Path:
    """Install Chromium, as a system package where that is allowed.

    Raises:
        NoChromium: that did not work.
    """
    commands = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        commands.insert(0, ["apt-get", "install", "-y", "chromium"])
        commands.insert(0, ["apt-get", "install", "-y", SHELL])
    for command in commands:
        subprocess.run(command, check=False)
        if path := chromium():
            return path
    raise NoChromium(REMEDY)
