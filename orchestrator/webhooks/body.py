"""The body of a webhook: read in full up to a limit, then as strict JSON of one form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpRequest
from pydantic import ConfigDict

from orchestrator import strict_json
from orchestrator.definition.codec import MAX_BYTES, decode
from orchestrator.definition.messages import STRICT
from orchestrator.exceptions import InvalidMessage
from orchestrator.webhooks.not_accepted import NotAccepted


@dataclass(frozen=True)
class Envelope:
    """An event and whom it is for: one process, or whichever has the correlation key, or none yet."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    type: str
    process_id: UUID | None = None
    correlation_key: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def read_body(request: HttpRequest) -> bytes:
    """The raw body, which the signature is over.

    Raises:
        NotAccepted: 413 when it is too large, 415 when it says that it is not JSON.
    """
    length = request.headers.get("Content-Length", "0")
    if not length.isdecimal() or int(length) > MAX_BYTES:
        raise _too_large()
    _check_content_type(request)
    body = request.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise _too_large()
    return body


def read_envelope(body: bytes) -> Envelope:
    """The event in a body.

    Raises:
        NotAccepted: 400 when it is not strict JSON, 422 when it has another form.
    """
    try:
        content = strict_json.parse(body)
    except InvalidMessage as error:
        raise NotAccepted(400, "not_json", str(error)) from None
    try:
        return decode(Envelope, content)
    except InvalidMessage as error:
        wanted = "send an object with type, data and, if known, process_id or correlation_key"
        raise NotAccepted(422, "invalid_message", f"{error}; {wanted}") from None


def _check_content_type(request: HttpRequest) -> None:
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    if request.content_type != "application/json" or charset != "utf-8":
        raise NotAccepted(
            415,
            "unsupported_media_type",
            "send Content-Type: application/json in UTF-8",
        )
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise NotAccepted(
            415, "unsupported_media_type", "send the body without a Content-Encoding"
        )


def _too_large() -> NotAccepted:
    return NotAccepted(
        413, "too_large", f"send at most {MAX_BYTES} bytes, and say how many"
    )
