"""The fixtures that only the tests of this folder share."""

import pytest

from tests.services.crews import crew
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers

hands = crew()
"""Two workers; the test starts them."""


@pytest.fixture
def workers(hands: Workers, valkey: ValkeyServer) -> Workers:
    """Run two workers; they are those of most tests, so that nothing is loaded for these alone."""
    hands.start()
    return hands
