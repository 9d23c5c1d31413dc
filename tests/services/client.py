"""A client that a test reads pages with."""

from collections.abc import Callable
from typing import Any

from django import test

Read = Callable[..., str]
"""Reads a page that a test file knows how to find."""


class Client(test.Client):
    """Django's client of a test, which gives a page as text too."""

    def read(self, address: str, /, *given: Any, status: int = 200, **more: Any) -> str:
        """Return the text that `address` is answered with by GET; the answer must have this status."""
        answer = self.get(address, *given, **more)
        assert answer.status_code == status, (address, answer.status_code)
        if answer.streaming:
            return b"".join(answer).decode()
        return answer.content.decode()
