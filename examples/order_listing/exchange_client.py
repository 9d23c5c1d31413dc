"""Calls to the exchange over HTTP. Its address comes from the settings and never from a message."""

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from django.conf import settings

from orchestrator.exceptions import Permanent

ANSWER_LIMIT = 4_096  # bytes of an answer that are read
TRY_AGAIN = {408, 425, 429}  # answers of the 4xx family that ask for another attempt


class ExchangeUnavailable(Exception):
    """The exchange could not be reached or could not serve now: trying again may help."""


def post_order(order: Mapping[str, str], *, idempotency_key: str) -> int:
    """Asks the exchange to create an order.

    Args:
        order: request id, order id and description.
        idempotency_key: equal in every attempt; the exchange creates one order for it.

    Returns:
        The HTTP status, 2xx.

    Raises:
        ExchangeUnavailable: no answer, or one that says to try again.
        Permanent: the exchange does not want this request, however often it is sent.
    """
    headers = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key}
    status, text = _post("/orders", json.dumps(order).encode(), headers)
    if 200 <= status < 300:
        return status
    said = f"the exchange answered HTTP {status}: {text}"
    if status >= 500 or status in TRY_AGAIN:
        raise ExchangeUnavailable(said)
    raise Permanent(
        said
    )  # a redirect too: orders go to the configured address or nowhere


def _post(path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, str]:
    connection, prefix = _connect()
    try:
        connection.request("POST", prefix + path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read(ANSWER_LIMIT).decode(errors="replace")
    except (OSError, HTTPException) as error:
        raise ExchangeUnavailable(
            f"the exchange could not be reached: {error!r}"
        ) from error
    finally:
        connection.close()


def _connect() -> tuple[HTTPConnection, str]:
    url = urlsplit(str(settings.ORDER_LISTING["EXCHANGE_URL"]))
    if not url.hostname:
        raise Permanent("no exchange is configured; set ORDER_LISTING_EXCHANGE_URL")
    kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
    timeout = float(str(settings.ORDER_LISTING["TIMEOUT"]))
    return kind(url.hostname, url.port, timeout=timeout), url.path.rstrip("/")
