"""What all tests of the console begin with."""

import pytest

from monitoring.api.wrong_tokens import wrong_tokens


@pytest.fixture(autouse=True)
def no_wrong_tokens() -> None:
    """Nobody has brought a wrong token yet."""
    wrong_tokens.forget()
