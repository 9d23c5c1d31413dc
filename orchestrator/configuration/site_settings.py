"""The site's public address, and the token for its metrics: two settings of one text each.

A value with a mistake counts as not set.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from orchestrator.configuration.conf import (
    Form,
    Setting,
    SettingRefused,
    log_once,
    require_text,
)


def is_site_address(address: str) -> bool:
    """Return whether a text is the address of a site."""
    parts = urlsplit(address)  # raises ValueError where the port is no number
    plain = address.isprintable() and " " not in address
    web = parts.scheme in {"http", "https"} and parts.port != 0
    return plain and web and bool(parts.hostname)


SiteText = Annotated[str, BeforeValidator(require_text)]
# No refusal repeats the value: an address may have a password in it.
SiteAddress = Annotated[
    SiteText, Form("look like https://host:8000/path", is_site_address, hides=object)
]
MetricsToken = Annotated[
    SiteText,
    Form(
        "have 32 to 255 letters, digits and . _ ~ + / = -",
        re.compile(r"[0-9A-Za-z._~+/=-]{32,255}").fullmatch,
        hides=object,
    ),
]

SITE_URL = Setting(
    "PROCESSION_SITE_URL",
    SiteAddress,
    "",
    "orchestrator.E014",
    'Write it like this, or leave it out:\nPROCESSION_SITE_URL = "https://procession.example.org"',
    unset=(None, ""),
)
METRICS_TOKEN = Setting(
    "PROCESSION_METRICS_TOKEN",
    MetricsToken,
    "",
    "orchestrator.E014",
    "This makes one:\nhead -c 32 /dev/urandom | base64\nRead it from the environment:\n"
    'PROCESSION_METRICS_TOKEN = os.environ["METRICS_TOKEN"]',
    unset=(None, ""),
)
TEXT_SETTINGS = SITE_URL, METRICS_TOKEN


def usable_text(setting: Setting[str]) -> str:
    """Return the text of a setting; "" if it is not set, or has a mistake, which is logged once."""
    try:
        return setting.read(setting.raw_value())
    except SettingRefused as mistake:
        log_once(str(mistake))
        return ""


def site_url() -> str:
    """Return the site's public address, without a slash at its end; "" if it is not known."""
    return usable_text(SITE_URL).rstrip("/")


def metrics_token() -> str:
    """Return the token with which programs read metrics; "" without one."""
    return usable_text(METRICS_TOKEN)
