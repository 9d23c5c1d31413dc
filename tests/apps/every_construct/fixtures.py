"""Makes the help desk known to this process for a module of tests."""

from collections.abc import Iterator

import pytest

from orchestrator.testing import registered
from tests.apps.every_construct import processes

__all__ = ["helpdesk"]


@pytest.fixture(scope="module")
def helpdesk() -> Iterator[None]:
    """Let the running code have the help desk's workflows."""
    with registered(processes.Inquiry, processes.Billing, processes.Lattice):
        yield
