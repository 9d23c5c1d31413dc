"""Keys by which webhooks are signed after Standard Webhooks, in both directions."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from pydantic import BeforeValidator

from orchestrator.conf import SECRET, text

LEAST_KEY = 24  # bytes of a key, as Standard Webhooks has it
MUST = f"be {SECRET} and the base64 of {LEAST_KEY} bytes or more"
ONE_OR_TWO = f"{MUST}, or two of them with a comma between"


def signing_key(value: Any) -> str:
    """A key that can be used.

    Raises:
        ValueError: it is none.
    """
    written = text(value)
    if not written.startswith(SECRET):
        raise ValueError("no signing key")
    key = base64.b64decode(written.removeprefix(SECRET), validate=True)
    if len(key) < LEAST_KEY:
        raise ValueError("too short")
    return written


SigningKey = Annotated[str, BeforeValidator(signing_key)]
