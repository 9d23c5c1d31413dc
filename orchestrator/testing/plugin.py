"""Fixtures for pytest. Installing Procession makes them available; a fixture imports the rest when a test uses it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # only for types: pytest loads this module in every run
    from orchestrator.registry import DefinitionClass
    from orchestrator.testing.replacements import Replaceable

__all__ = ["procession_quiet", "procession_registered", "procession_replaced"]


@pytest.fixture
def procession_quiet() -> Iterator[None]:
    """Keep the code under test from connecting to Redis, even if it commits."""
    from orchestrator.queue import suppress_all_wakes

    with suppress_all_wakes():
        yield


@pytest.fixture
def procession_registered() -> Iterator[Callable[..., None]]:
    """Return a function that registers definitions outside apps until the end of the test."""
    from orchestrator.testing.replacements import registered

    with ExitStack() as stack:

        def register(*definitions: DefinitionClass) -> None:
            stack.enter_context(registered(*definitions))

        yield register


@pytest.fixture
def procession_replaced() -> Iterator[
    Callable[[Replaceable, Callable[..., Any]], None]
]:
    """Return a function that replaces a step's or a handler's function until the end of the test."""
    from orchestrator.testing.replacements import replaced

    with ExitStack() as stack:

        def replace(what: Replaceable, by: Callable[..., Any]) -> None:
            stack.enter_context(replaced(what, by))

        yield replace
