"""What moved a process, written and read again."""

import pytest

from orchestrator.models import Cause, CauseKind
from tests.services.cases import cases


@pytest.mark.parametrize("kind", CauseKind)
@pytest.mark.parametrize("rest", [(), (7,), (7, 2), (7, "child", "0190")])
def test_a_cause_is_read_again(kind: CauseKind, rest: tuple[object, ...]) -> None:
    cause = Cause.of(kind, *rest)

    assert Cause.parse(str(cause)) == cause


@cases(
    "text, cause, step_run",
    ("start", Cause(CauseKind.START), None),
    ("event:12", Cause(CauseKind.EVENT, "12"), None),
    ("deadline:4:0", Cause(CauseKind.DEADLINE, "4", "0"), 4),
    ("step:4", Cause(CauseKind.STEP, "4"), 4),
    ("step:4:child:0190-ab", Cause(CauseKind.STEP, "4", "child:0190-ab"), 4),
    ("failure:steprun:4:9", Cause(CauseKind.STEP_FAILED, "4", "9"), 4),
    ("failure:inboxevent:4:9", Cause(CauseKind.EVENT_FAILED, "4", "9"), None),
    ("parent:4", Cause(CauseKind.PARENT, "4"), None),
)
def test_causes_have_this_form(text: str, cause: Cause, step_run: int | None) -> None:
    assert Cause.parse(text) == cause
    assert str(cause) == text
    assert cause.step_run == step_run


@cases("text", "", "magic:1", "failure", "failure:worker:1")
def test_a_cause_of_no_known_kind_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="CauseKind"):
        Cause.parse(text)
