"""The input of a workflow, read and checked once instead of at each step."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.definition.annotations import hints, is_immutable
from orchestrator.definition.codec import decode, decode_text
from orchestrator.exceptions import InvalidMessage

SPREAD = 8
"""About the bytes in memory for one byte of JSON text, as values and as text."""

LEAST_BYTES = 2_000


class Input:
    """The input of one process. Each step gets values that no other step can change.

    Immutable values are shared; all others are decoded anew for each step from the text of their field.

    Args:
        form: the workflow's `Input`.
        body: the input as JSON values.

    Raises:
        InvalidMessage: the input does not have the declared form.
    """

    def __init__(self, form: type[Any], body: Any) -> None:
        self._form = form
        self._value = decode(form, body)
        self._text = json.dumps(body)
        self._fixed: dict[str, bool] = {}
        self._texts: dict[str, str | None] = {}
        self.size = LEAST_BYTES + SPREAD * len(self._text)
        """About the bytes that it takes in memory."""

    def whole(self) -> Any:
        """Return the whole input."""
        if is_immutable(self._form):
            return self._value
        return decode_text(self._form, self._text)

    def field(self, name: str) -> Any:
        """Return one field of the input."""
        hint = hints(self._form)[name]
        if name not in self._fixed:
            self._fixed[name] = is_immutable(hint)
        if self._fixed[name]:
            return getattr(self._value, name)
        if name not in self._texts:
            self._texts[name] = self._text_of(name, hint)
        text = self._texts[name]
        return getattr(self.whole(), name) if text is None else decode_text(hint, text)

    def _text_of(self, name: str, hint: Any) -> str | None:
        """The text of a field; None where the class converts the field itself."""
        body = json.loads(self._text)
        if name not in body:
            return None
        text = json.dumps(body[name])
        try:
            alike = decode_text(hint, text) == getattr(self._value, name)
        except InvalidMessage:
            return None
        return text if alike else None
