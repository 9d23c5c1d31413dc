"""Makes the workflows known to the engine for a module of tests, with an empty journal for each test."""

from collections.abc import Callable
from functools import partial

import pytest
from django.contrib.auth.models import User

from orchestrator.engine.operations import ActionRequest
from tests.apps.compensation import journal, steps
from tests.apps.compensation.processes import WORKFLOWS
from tests.apps.compensation.rallies import RALLIES
from tests.services import asking
from tests.services.crews import knowing

__all__ = ["Ask", "asked", "known", "trips"]

Ask = Callable[..., ActionRequest]


known = knowing(*WORKFLOWS, *RALLIES, autouse=False)


@pytest.fixture
def trips(known: None) -> None:
    """Begin with nothing done and nothing wrong."""
    journal.forget()
    steps.during.clear()


@pytest.fixture
def asked(operator: User) -> Ask:
    """Return a function that makes the operator's requests."""
    return partial(asking.asked, actor=operator)
