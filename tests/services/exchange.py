"""The simulated exchange, and the messages it signs."""

import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from django.conf import settings
from standardwebhooks.webhooks import Webhook

from tests.services.program import Program, management_command
from tests.services.site import Site

NO_TIME = timedelta(0)


def headers(
    body: bytes, *, id: str = "msg_1", key: str | None = None, age: timedelta = NO_TIME
) -> dict[str, str]:
    """Return the headers with which the exchange would send `body`, signed `age` ago."""
    signed_at = datetime.now(UTC) - age
    secret = settings.WEBHOOK_SOURCES["exchange"][0] if key is None else key
    signature = Webhook(secret).sign(id, signed_at, body.decode(errors="replace"))
    at = str(int(signed_at.timestamp()))
    return {"webhook-id": id, "webhook-timestamp": at, "webhook-signature": signature}


def post_json(url: str, body: object, **more: str) -> dict[str, Any]:
    """Send JSON and return the JSON of the answer.

    Raises:
        HTTPError: the answer is not 2xx.
    """
    sent = {"Content-Type": "application/json", **more}
    request = Request(url, json.dumps(body).encode(), sent)  # noqa: S310  the address is a test's own
    with urlopen(request, timeout=60) as answer:  # noqa: S310
        return dict(json.loads(answer.read()))


class ExchangeProcess:
    """The exchange on a free port, as `python -m examples.exchange`.

    Args:
        webhook_url: where it calls back.
        managed: run it as `manage.py exchange` instead.
        port: where it listens; without it, where nobody does.
        behaviour: its rates and delays at first.
    """

    def __init__(
        self,
        webhook_url: str,
        *,
        managed: bool = False,
        port: int = 0,
        **behaviour: float,
    ) -> None:
        words = ["--port", str(port), "--seed", "7", "--webhook-url", webhook_url]
        for name, value in behaviour.items():
            words += [f"--{name}", str(value)]
        command = [sys.executable, "-m", "examples.exchange", *words]
        self.program = Program("exchange", command)
        if managed:
            self.program = management_command("exchange", "--calm", *words)
        self.url = ""

    def start(self) -> None:
        """Start the exchange and wait until it says its address."""
        before = len(self._said())
        self.program.start()
        self.program.wait_until(lambda: len(self._said()) > before)
        self.url = self._said()[-1]

    def stop(self) -> int | None:
        """End the exchange as `up` does; return its exit code."""
        return self.program.stop()

    def behave(self, **behaviour: float) -> None:
        """Change its rates and delays."""
        post_json(f"{self.url}/behaviour", behaviour)

    def _said(self) -> list[str]:
        text = self.program.log.read_text() if self.program.log.exists() else ""
        return re.findall(r"^exchange on (\S+)$", text, re.MULTILINE)


@pytest.fixture
def exchange(
    live_site: Site, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ExchangeProcess]:
    """Run a calm and quick exchange that calls the live site; processes started after it know its address.

    Its address is the same in all tests: those processes have one environment, and are forked from one that has it.
    """
    exchange = started_at(f"{live_site.url}/hooks/exchange/", _used[-1])
    _used.append(urlsplit(exchange.url).port or 0)
    monkeypatch.setenv("ORDER_LISTING_EXCHANGE_URL", exchange.url)
    yield exchange
    exchange.stop()


_used = [0]
"""Ports on which exchanges have listened."""


def started_at(webhook_url: str, port: int) -> ExchangeProcess:
    """Start an exchange on a port, or where somebody else has it by now, on another one."""
    exchange = ExchangeProcess(webhook_url, port=port, shortest=0.05, longest=0.2)
    try:
        exchange.start()
    except TimeoutError:
        if not port:
            raise
        return started_at(webhook_url, 0)
    return exchange
