"""Makes the workflows known to the engine for a module of tests, with an empty journal for each test."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from orchestrator.engine.operations import ActionRequest
from orchestrator.testing import registered
from tests.apps.compensation import journal, steps
from tests.apps.compensation.processes import WORKFLOWS
from tests.apps.compensation.rallies import RALLIES

__all__ = ["Ask", "asked", "known", "trips"]

Ask = Callable[..., ActionRequest]


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    """Let the running code have these workflows: also while the invariants are asked for after each test."""
    with registered(*WORKFLOWS, *RALLIES):
        yield


@pytest.fixture
def trips(known: None) -> None:
    """Begin with nothing done and nothing wrong."""
    journal.forget()
    steps.during.clear()


@pytest.fixture
def asked(operator: User) -> Ask:
    """Return a function that makes the operator's requests."""

    def request(**given: Any) -> ActionRequest:
        facts = {"actor": operator, "key": uuid4(), "reason": "why", **given}
        return ActionRequest(**facts)

    return request
