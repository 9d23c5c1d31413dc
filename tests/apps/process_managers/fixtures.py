"""Makes the parcels known to the engine for a module of tests, and handlers replaceable for one test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator import registry
from orchestrator.definition import Command
from orchestrator.definition.declarations.handlers import Handler
from orchestrator.testing import registered
from tests.apps.process_managers import handlers, processes
from tests.services.crews import knowing

__all__ = ["handler", "known", "parcels"]


SetHandler = Callable[..., None]
"""Gives a command another handler until the end of the test."""


def known(*definitions: registry.DefinitionClass) -> Iterator[None]:
    """Let the running code have these definitions too."""
    with registered(*definitions):
        yield


assert handlers.__name__  # importing it has registered them
parcels = knowing(processes.Shipping, autouse=False)


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> SetHandler:
    """Return a function that gives a command another handler."""

    def replace(
        command: type[Command],
        function: Callable[..., Any],
        *,
        after_commit: bool = False,
        attempts: int = 4,
        timeout: float = 300,
        queue: str = "default",
    ) -> None:
        entry = Handler(function, command, after_commit, attempts, timeout, queue)
        monkeypatch.setitem(registry.command_handlers, command.__name__, [entry])

    return replace
