"""Keys by which webhooks are signed after Standard Webhooks, in both directions."""

from __future__ import annotations

import base64
from typing import Annotated

from pydantic import AfterValidator

from orchestrator.conf import Form

LEAST_KEY = 24  # bytes of a key, as Standard Webhooks has it


def signing_key(value: str) -> str:
    key = base64.b64decode(value.removeprefix("whsec_"), validate=True)
    if len(key) < LEAST_KEY or not value.startswith("whsec_"):
        raise ValueError("no signing key")
    return value


SigningKey = Annotated[str, AfterValidator(signing_key)]
SIGNING_KEYS = Form(
    f"be whsec_ and the base64 of {LEAST_KEY} bytes or more, or two of them with a comma between",
    secret=True,
)
