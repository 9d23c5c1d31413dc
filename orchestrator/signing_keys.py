"""Keys by which webhooks are signed after Standard Webhooks, in both directions."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from pydantic import AfterValidator

from orchestrator.conf import Form, text

PREFIX = "whsec_"
LEAST_KEY = 24  # bytes of a key, as Standard Webhooks has it


def signing_key(value: Any) -> str:
    """A key that can be used.

    Raises:
        ValueError: it is none.
    """
    written = text(value)
    if not written.startswith(PREFIX):
        raise ValueError("no signing key")
    key = base64.b64decode(written.removeprefix(PREFIX), validate=True)
    if len(key) < LEAST_KEY:
        raise ValueError("too short")
    return written


SigningKey = Annotated[str, AfterValidator(signing_key)]
SIGNING_KEYS = Form(
    f"be {PREFIX} and the base64 of {LEAST_KEY} bytes or more, or two of them with a comma between",
    secret=True,
)
