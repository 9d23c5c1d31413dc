"""Notices by webhook, signed after Standard Webhooks: see standardwebhooks.com."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from standardwebhooks.webhooks import Webhook as Signing

from orchestrator.exceptions import Permanent, Retry
from orchestrator.notices.message import NoticeMessage

ANSWER_SECONDS = 10.0
"""Seconds that the receiver may take to answer."""
BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
MOST_DIGITS = 6


class Webhook:
    """Posts JSON to an address.

    Args:
        url: the address.
        keys: the signing keys. While a key is replaced there are two, and each signs.
    """

    def __init__(self, url: str, keys: Sequence[str]) -> None:
        self.url, self.keys = url, keys

    def send(self, message: NoticeMessage) -> None:
        """Post a message; any answer of 2xx means that it has arrived.

        Raises:
            Permanent: the receiver answers 410 (gone).
            Retry: the receiver answers with another status; if it is busy, after the pause that it asks for.
            OSError: the receiver cannot be reached, or does not answer in time.
        """
        body = json.dumps(message.as_json(), ensure_ascii=False)
        request = Request(  # noqa: S310  the settings take https alone, and http on loopback
            self.url,
            body.encode(),
            {
                "Content-Type": "application/json",
                "User-Agent": "procession",
                **self._signed(message.id, body),
            },
        )
        try:
            with build_opener(NoRedirects).open(request, timeout=ANSWER_SECONDS):
                return
        except HTTPError as answer:
            self._refused(answer)

    def _signed(self, id: str, body: str) -> dict[str, str]:
        now = datetime.now(UTC)
        return {
            "webhook-id": id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(
                Signing(key).sign(id, now, body) for key in self.keys
            ),
        }

    def _refused(self, answer: HTTPError) -> None:
        with answer:
            said = f"the receiver answered {answer.code}"
            if answer.code == HTTPStatus.GONE:
                raise Permanent(said) from None
            after = answer.headers.get("Retry-After", "")
            asked = answer.code in BUSY and after.isdecimal()
            if asked and len(after) <= MOST_DIGITS:
                raise Retry(timedelta(seconds=int(after)), said) from None
            raise Retry(message=said) from None


class NoRedirects(HTTPRedirectHandler):
    """Follows no redirects: a message that is signed for one receiver is not sent to another."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None
