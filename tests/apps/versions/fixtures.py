"""Makes both versions of everything known to this process for a module of tests."""

from collections.abc import Iterator

import pytest

from orchestrator.testing import registered
from tests.apps.versions import claims, letters

__all__ = ["versions"]


@pytest.fixture(scope="module")
def versions() -> Iterator[None]:
    """Let the running code have all versions."""
    with registered(claims.Claim, claims.ClaimInCents, *letters.ALL):
        yield
