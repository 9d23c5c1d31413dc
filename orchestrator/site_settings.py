"""Where people find the console, and what programs bring that ask for metrics: two settings that are one text each.

One that cannot be used is as if it were not set.
"""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from orchestrator.conf import Form, Setting, SettingRefused, log_once, text


def is_address(address: str) -> bool:
    parts = urlsplit(address)  # raises ValueError where the port is no number
    plain = address.isprintable() and " " not in address
    web = parts.scheme in {"http", "https"} and parts.port != 0
    return plain and web and bool(parts.hostname)


Text = Annotated[str, BeforeValidator(text)]
# Neither is repeated: an address may have a password in it.
SiteAddress = Annotated[
    Text, Form("look like https://host:8000/path", is_address, hides=object)
]
MetricsToken = Annotated[
    Text,
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
TEXTS = SITE_URL, METRICS_TOKEN


def in_force(setting: Setting[str]) -> str:
    try:
        return setting.read(setting.given())
    except SettingRefused as mistake:
        log_once(str(mistake))
        return ""


def site_url() -> str:
    """The site's public address, without a slash at its end; "" where it is not known."""
    return in_force(SITE_URL).rstrip("/")


def token_of_metrics() -> str:
    """What programs bring that ask for metrics; "" where none is good."""
    return in_force(METRICS_TOKEN)
