"""The import refuses a `catch` whose steps never fail with its error."""

# These steps are declared and never run.
# mypy: disable-error-code="empty-body"

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrator import CorruptInput, Permanent, Retry, Skip
from orchestrator.definition import (
    Workflow,
    ask,
    case,
    catch,
    each,
    join,
    repeat,
    route,
    run,
    start,
    step,
    then,
    wait,
)
from orchestrator.exceptions import (
    ChildCancelled,
    InvalidMessage,
    KeyTaken,
    ProcessionError,
    SubprocessDeclined,
    SubprocessFailed,
    TimedOut,
)
from tests.services.cases import cases
from tests.unit.workflows import Approved, Medium, define, plan_of, refusal, steps

a, b, c, x = steps("a b c x")


@dataclass(frozen=True)
class Nothing:
    """No input."""


def quietly() -> int: ...


def never(value: int) -> bool: ...


class Part(Workflow):
    """A sub-process."""

    Input = Nothing
    flow = (step(quietly, "only"),)


class Told(Workflow):
    """One whose summary is the application's."""

    Input = Nothing
    flow = (step(quietly, "only"),)

    @staticmethod
    def summary(input: Any) -> str:
        return "told"


part, told = run(Part, "part"), run(Told, "told")
approved, asked = wait(Approved, "approved"), ask("asked", Medium)


class NotThere(Skip):
    """An outcome of the application's own."""


def listed() -> list[int]: ...


VAIN: list[tuple[list[Any], str]] = [
    ([catch(a, error=Skip, to=x)], "Skip passes a over, which is no failure"),
    ([catch(a, error=NotThere, to=x)], "NotThere passes a over"),
    ([catch(a, error=CorruptInput, to=x)], "what follows when it is of no use is a Permanent"),
    ([catch(a, error=SubprocessFailed, to=x)], "a runs no sub-process"),
    ([catch(a, error=ChildCancelled, to=x)], "a runs no sub-process"),
    ([catch(approved, error=Exception, to=x)], "approved waits, and so does not fail"),
    ([catch(approved, asked, error=TimedOut, to=x)], "approved waits, and so does not fail"),
    ([catch(part, error=ConnectionError, to=x)], "part runs a sub-process, and fails with SubprocessFailed"),
    ([catch(part, error=Retry, to=x)], "part runs a sub-process, and fails with SubprocessFailed"),
    ([catch(part, approved, error=ValueError, to=x)], "part runs a sub-process"),
    (
        [each(step(listed), over="", do=run(Part, "parts"), into=b), catch(run(Part, "others"), error=OSError, to=x)],
        "others runs a sub-process",
    ),
]  # fmt: skip


@cases("rows, reason", *VAIN)
def test_a_catch_that_is_never_taken_is_refused(rows: list[Any], reason: str) -> None:
    refused = refusal(*rows)

    assert reason in refused.reason
    assert refused.row.startswith("catch(")


FITTING: list[Callable[[], list[Any]]] = [
    lambda: [catch(a, error=Retry, to=x)],
    lambda: [catch(a, error=Permanent, to=x)],
    lambda: [catch(a, error=ProcessionError, to=x)],
    lambda: [catch(a, approved, error=ValueError, to=x)],
    lambda: [catch(a, part, error=ConnectionError, to=x)],
    lambda: [start(a, b), join(a, b, into=asked, wait_for=1), catch(asked, error=Permanent, to=x)],
    lambda: [catch(told, error=ConnectionError, to=x)],
    lambda: [route(part, case(never, to=b), otherwise=c), catch(part, error=ValueError, to=x)],
    lambda: [repeat(part, until=never, at_most=2, then=b), catch(part, error=ValueError, to=x)],
    *(
        lambda error=error: [then(part, b), catch(part, error=error, to=x)]
        for error in (
            Exception, ProcessionError, Permanent, SubprocessFailed, SubprocessDeclined, ChildCancelled, KeyTaken,
            InvalidMessage, TimedOut,
        )
    ),
]  # fmt: skip


@cases("rows", *FITTING)
def test_one_that_a_step_may_take_is_not(rows: Callable[[], list[Any]]) -> None:
    assert any(link.kind == "error" for link in plan_of(*rows()).links)


def test_one_behind_a_wider_one_is_refused_also_of_a_sub_process() -> None:
    wider, narrower = (
        catch(part, error=error, to=to)
        for error, to in ((SubprocessFailed, x), (SubprocessDeclined, b))
    )

    assert "is caught by a row before it" in refusal(wider, narrower).reason
    assert define(narrower, wider)
