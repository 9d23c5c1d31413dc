"""What errors say that were raised without words."""

from orchestrator import Permanent, Retry, Skip
from orchestrator.exceptions import LeaseLost, ProcessionError
from tests.services.cases import cases


@cases("kind", Permanent, Retry, Skip, LeaseLost)
def test_an_error_without_words_says_what_it_is(kind: type[ProcessionError]) -> None:
    said = str(kind())

    assert said == (kind.__doc__ or "").splitlines()[0]
    assert "Args" not in said
