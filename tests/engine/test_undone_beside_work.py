"""What is undone and what is not, beside work that still runs, conditions that raise, and sub-processes."""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum

import pytest

from orchestrator import Permanent
from orchestrator.definition import (
    Workflow,
    ask,
    case,
    catch,
    join,
    route,
    run,
    start,
    step,
    then,
    undo,
)
from orchestrator.engine.loops.drain import drain
from orchestrator.models import Incident
from orchestrator.testing import started
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db

AWAY = ConnectionError("no line")
NO = Permanent("no")


class Answer(StrEnum):
    YES = "yes"


calls = Counter[str]()
wrong: dict[str, Exception] = {}
"""What a step raises after it was called."""
meanwhile: list[Callable[[], object]] = []
"""What else is done while somebody is charged."""


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    calls.clear()
    wrong.clear()
    meanwhile.clear()


def called(name: str) -> None:
    calls[name] += 1
    if name in wrong:
        raise wrong[name]


def charge() -> int:
    while meanwhile:
        meanwhile.pop()()
    called("charge")
    return 1


def refund() -> None:
    called("refund")


def decline() -> None:
    raise NO


def bad(charge: int) -> bool:
    raise ValueError("out of a condition")


def ship() -> None: ...


def hold() -> None: ...


charged = step(charge, retries=0)
refunded = undo(charge, by=refund)


class Caught(Workflow):
    """People decide when the charge has failed."""

    flow = (
        then(charged, ship),
        catch(charge, error=ConnectionError, to=ask("consider", Answer)),
        refunded,
    )


class Decided(Workflow):
    """A condition decides what follows the charge."""

    flow = (route(charged, case(bad, to=ship), otherwise=hold), refunded)


class Beside(Workflow):
    """Another worker declines while somebody is charged."""

    flow = (
        start(charged, step(decline, queue="press")),
        join(charge, decline, into=ship),
        refunded,
    )


class Looking(Workflow):
    flow = (ask("look", Answer),)


looking = run(Looking, "looking")


class Outing(Workflow):
    """Goes another way where its sub-process comes to nothing."""

    flow = (then(looking, ship), catch(looking, error=Exception, to=hold))


class Regretting(Workflow):
    """Is undone by itself."""

    flow = (then(charged, decline), refunded)


regretting = run(Regretting, "regretting")


class Sending(Workflow):
    flow = (then(regretting, ship),)


known = knowing(Caught, Decided, Beside, Looking, Outing, Regretting, Sending)


def test_a_step_whose_failure_was_caught_has_nothing_to_undo() -> None:
    wrong["charge"] = AWAY
    process = started(Caught)
    assert process.open_steps == ["consider"]
    process.cancel()

    assert (process.status, calls) == ("cancelled", {"charge": 1})


def test_a_step_that_has_returned_is_undone_though_its_condition_raised() -> None:
    process = started(Decided)
    assert (process.status, calls) == ("failed", {"charge": 1})
    process.cancel()

    assert (process.status, calls) == ("cancelled", {"charge": 1, "refund": 1})


@pytest.mark.parametrize("fails", [True, False])
def test_a_process_ends_undone_after_the_last_step_that_still_ran(fails: bool) -> None:
    meanwhile.append(lambda: drain("press"))
    if fails:
        wrong["charge"] = AWAY
    process = started(Beside)

    assert (process.status, process.incidents) == ("cancelled", [])
    assert Incident.objects.get().resolution == "undone"
    assert calls["refund"] == (0 if fails else 1)


def test_a_sub_process_that_has_ended_is_not_cancelled_with_its_step() -> None:
    process = started(Outing)
    (child,) = process.children
    child.cancel()

    assert (process.path, child.status) == (["looking", "hold"], "cancelled")
    causes = child.instance.checkpoints.values_list("cause", flat=True)
    assert not [cause for cause in causes if cause.startswith("parent:")]


def test_a_step_waits_for_its_sub_process_whose_undoing_has_failed() -> None:
    wrong["refund"] = Permanent("the bank is shut")
    process = started(Sending)
    (child,) = process.children
    assert (child.status, child.open_steps) == ("failed", ["undo charge"])
    assert (process.open_steps, process.incidents) == (["regretting"], [])

    wrong.clear()
    child.retry()
    assert (child.status, process.status) == ("cancelled", "failed")
