"""What errors say that were raised without words."""

import pytest

from orchestrator import Permanent, Retry, Skip
from orchestrator.exceptions import LeaseLost, ProcessionError


@pytest.mark.parametrize("kind", [Permanent, Retry, Skip, LeaseLost])
def test_an_error_without_a_message_says_what_it_is_in_one_line(
    kind: type[ProcessionError],
) -> None:
    said = str(kind())

    assert said == (kind.__doc__ or "").splitlines()[0]
    assert "Args" not in said
