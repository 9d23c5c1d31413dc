"""Where people find the console, and what programs bring that ask for metrics: two settings that are one text each.

What can be used is decided here, for the variables of the bundled project, the system check and what reads them. One
that cannot be is as if it were not set.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from django.conf import settings

from orchestrator.conf import Form, SettingMistake, log_once, text

TOKEN = re.compile(r"[0-9A-Za-z._~+/=-]{32,255}")


def site_address(value: Any) -> str:
    address = text(value)
    if not address.isprintable() or " " in address:
        raise ValueError("no address")
    parts = urlsplit(address)
    # Raises ValueError too where the port is no number.
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0:
        raise ValueError("no address of a site")
    return address


def metrics_token(value: Any) -> str:
    token = text(value)
    if not TOKEN.fullmatch(token):
        raise ValueError("no token")
    return token


# Neither is repeated: an address may have a password in it.
SITE_ADDRESS = Form("look like https://host:8000/path", secret=True)
METRICS_TOKEN = Form("have 32 to 255 letters, digits and . _ ~ + / = -", secret=True)


class _SiteSetting(NamedTuple):
    name: str
    read: Callable[[Any], str]
    form: Form
    remedy: str

    def given(self) -> str:
        """What it says; "" where it is not set.

        Raises:
            ValueError: it cannot be used.
        """
        given = getattr(settings, self.name, None)
        return "" if given is None or given == "" else self.read(given)

    def mistake(self) -> str:
        return f"settings.{self.name} must {self.form.must}."

    def in_force(self) -> str:
        try:
            return self.given()
        except ValueError:
            log_once(self.mistake())
            return ""


_SITE = _SiteSetting(
    "PROCESSION_SITE_URL",
    site_address,
    SITE_ADDRESS,
    'Write it like this, or leave it out:\nPROCESSION_SITE_URL = "https://procession.example.org"',
)
_TOKEN = _SiteSetting(
    "PROCESSION_METRICS_TOKEN",
    metrics_token,
    METRICS_TOKEN,
    "This makes one:\nhead -c 32 /dev/urandom | base64\nRead it from the environment:\n"
    'PROCESSION_METRICS_TOKEN = os.environ["METRICS_TOKEN"]',
)


def site_url() -> str:
    """The site's public address, without a slash at its end; "" where it is not known."""
    return _SITE.in_force().rstrip("/")


def token_of_metrics() -> str:
    """What programs bring that ask for metrics; "" where none is good."""
    return _TOKEN.in_force()


def mistakes_of_site() -> Iterator[SettingMistake]:
    """Give each mistake in the two settings."""
    for setting in (_SITE, _TOKEN):
        try:
            setting.given()
        except ValueError:
            yield SettingMistake(setting.mistake(), setting.remedy)
