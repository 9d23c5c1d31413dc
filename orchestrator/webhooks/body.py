"""The body of a webhook: read in full up to a limit, then as strict JSON of one form."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.http import HttpRequest

from orchestrator import strict_json
from orchestrator.definition.codec import MAX_BYTES
from orchestrator.engine.processes.events import Envelope
from orchestrator.exceptions import InvalidMessage
from orchestrator.json_events import read_listed_event, read_single_event
from orchestrator.webhooks.not_accepted import NotAccepted

MOST_EVENTS = 1_000
"""The most events of a list."""
DIGITS = 20
"""The most digits of a body's length; no number of bytes has more."""


class PostedEvents(NamedTuple):
    """The content of a message: an event, or a list of events."""

    envelopes: list[Envelope]
    is_list: bool


def read_body(request: HttpRequest) -> bytes:
    """Return the raw body, which the signature covers.

    Raises:
        NotAccepted: 413 when it is too large, 415 when it says that it is not JSON.
    """
    length = request.headers.get("Content-Length", "0")
    # Python reads no number of more than 4,300 digits.
    if not length.isdecimal() or len(length) > DIGITS or int(length) > MAX_BYTES:
        raise _too_large()
    _check_content_type(request)
    body = request.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise _too_large()
    return body


def read_events(body: bytes, message_id: str, source: str) -> PostedEvents:
    """Return the events in a body.

    Raises:
        NotAccepted: 400 when it is not strict JSON, 413 when it exceeds a limit, 422 when it has another form.
    """
    try:
        content = strict_json.parse(body)
    except strict_json.TooLarge as error:
        raise NotAccepted(413, "too_large", str(error)) from None
    except InvalidMessage as error:
        raise NotAccepted(400, "not_json", str(error)) from None
    if isinstance(content, list):
        return PostedEvents(_read_list(content, source), is_list=True)
    try:
        event = read_single_event(content, message_id, source)
        return PostedEvents([event], is_list=False)
    except InvalidMessage as error:
        detail = f"{error}, or a list of such objects with an id each"
        raise NotAccepted(422, "invalid_message", detail) from None


def _read_list(content: list[Any], source: str) -> list[Envelope]:
    if not content:
        raise NotAccepted(422, "invalid_message", "the list has no event")
    if len(content) > MOST_EVENTS:
        detail = f"send at most {MOST_EVENTS:,} events in a list"
        raise NotAccepted(413, "too_large", detail)
    found = []
    for place, one in enumerate(content):
        try:
            found.append(read_listed_event(one, source))
        except InvalidMessage as error:
            raise NotAccepted(422, "invalid_message", str(error), place=place) from None
    return found


def _check_content_type(request: HttpRequest) -> None:
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    detail = ""
    if request.content_type != "application/json" or charset != "utf-8":
        detail = "send Content-Type: application/json in UTF-8"
    elif encoding != "identity":
        detail = "send the body without a Content-Encoding"
    if detail:
        raise NotAccepted(415, "unsupported_media_type", detail)


def _too_large() -> NotAccepted:
    return NotAccepted(
        413, "too_large", f"send at most {MAX_BYTES} bytes, and say how many"
    )
