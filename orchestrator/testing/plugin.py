"""Fixtures for pytest, there as soon as Procession is installed. Nothing else is imported before one is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # for their types alone: pytest loads this module in every run
    from orchestrator.registry import Declared
    from orchestrator.testing.stand_ins import Replaceable

__all__ = [
    "procession_quiet",
    "procession_registered",
    "procession_replaced",
]


@pytest.fixture
def procession_quiet() -> Iterator[None]:
    """Let nothing look for Redis, also where the code under test commits for real."""
    from orchestrator.queue import silenced

    with silenced():
        yield


@pytest.fixture
def procession_registered() -> Iterator[Callable[..., None]]:
    """Return a function that makes definitions known that are in no app, until the end of the test."""
    from orchestrator.testing.stand_ins import registered

    with ExitStack() as stack:

        def register(*definitions: Declared) -> None:
            stack.enter_context(registered(*definitions))

        yield register


@pytest.fixture
def procession_replaced() -> Iterator[
    Callable[[Replaceable, Callable[..., Any]], None]
]:
    """Return a function that has another one run in the place of a step's or a handler's, until the end of the test."""
    from orchestrator.testing.stand_ins import replaced

    with ExitStack() as stack:

        def replace(what: Replaceable, by: Callable[..., Any]) -> None:
            stack.enter_context(replaced(what, by))

        yield replace
