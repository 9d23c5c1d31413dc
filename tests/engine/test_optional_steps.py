"""Optional steps: one that has failed for good gives None, and what follows goes on without anybody being asked."""

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import pytest

from orchestrator import CorruptInput, Permanent, start_process
from orchestrator.definition import (
    Failure,
    Workflow,
    ask,
    catch,
    fork,
    join,
    repeat,
    run,
    start,
    step,
    then,
    undo,
)
from orchestrator.engine.operations import redo
from orchestrator.models import Incident, Lost, StepRun
from orchestrator.testing import Process, pass_time, registered, started
from tests.engine.test_failure_attempts import lose
from tests.services.asking import asked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

calls = Counter[str]()
wrong: dict[str, Exception] = {}
"""What the functions raise, by their names."""


def do(name: str) -> str:
    calls[name] += 1
    if name in wrong:
        raise wrong[name]
    return name


def forecast() -> str:
    return do("forecast")


def traffic() -> str:
    return do("traffic")


def plan(forecast: str | None, traffic: str | None = "none") -> str:
    return f"{do('plan')} by {forecast} and {traffic}"


def book() -> str:
    return do("book")


def cancel(book: str) -> None:
    do("cancel")


def tell(failure: Failure) -> str:
    return f"{failure.type} {failure.attempts}"


def doubt(forecast: str | None) -> str:
    if forecast is not None and calls["doubt"] == 0:
        calls["doubt"] += 1
        wrong["forecast"] = ValueError("clouds")
        raise CorruptInput("forecast", "it never snows here")
    return f"it is {forecast}"


def look() -> int:
    calls["look"] += 1
    if calls["look"] > 1:
        raise ValueError("dark")
    return 1


def watch(look: int | None) -> int:
    return look or 0


def none_seen(seen: int) -> bool:
    return seen == 0


def end(watch: int) -> str:
    return f"{watch} seen"


weather = step(forecast, retries=1, backoff=0.001, optional=True)


class Outing(Workflow):
    """One optional step before another one."""

    flow = (then(book, weather, plan), undo(book, by=cancel))


class Ending(Workflow):
    """The optional step is the last one."""

    flow = (then(book, weather),)


class Parting(Workflow):
    """Two steps follow the optional one, and come together."""

    left, right = step(plan, "left"), step(plan, "right")
    flow = (fork(weather, into=[left, right]), join(left, right, into=traffic))


class Strict(Workflow):
    """A strict join that cancels its other branches when one fails."""

    flow = (
        start(weather, traffic),
        join(weather, traffic, into=plan, wait_for="every", on_failure="fail_fast"),
    )


class Caught(Workflow):
    """An error route comes first, for its errors."""

    flow = (then(weather, plan), catch(weather, error=Permanent, to=tell))


class Looping(Workflow):
    """The optional step stands in a loop, and fails in the second round."""

    dark = step(look, optional=True, retries=0)
    flow = (repeat(dark, watch, until=none_seen, at_most=3, then=end),)


class Doubting(Workflow):
    """A later step has the optional one done again."""

    flow = (then(step(forecast, retries=0, optional=True), doubt),)


class Stored(Workflow):
    """The optional step is transactional."""

    flow = (then(step(forecast, retries=0, transactional=True, optional=True), plan),)


class Abroad(Workflow):
    """The optional step is a sub-process."""

    outing = run(Outing, "forecast", optional=True)
    flow = (then(outing, plan),)


class Answer(StrEnum):
    YES = "yes"


class Asking(Workflow):
    """A person is asked between the optional step and the one that reads its result."""

    flow = (then(weather, ask("go", Answer), plan),)


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    shown = (Outing, Ending, Parting, Strict, Caught, Looping, Doubting, Stored)
    with registered(*shown, Abroad, Asking):
        yield


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    calls.clear()
    wrong.clear()


def ended(definition: type[Workflow], **errors: Exception) -> Process:
    """Run a process to its end, while some functions raise."""
    wrong.update(errors)
    return started(definition).finish()


def row(process: Process, node: str = "forecast") -> StepRun:
    """Return the last round of a step."""
    rows = StepRun.objects.filter(instance=process.id, node=node)
    return rows.latest("visit", "round")


STORM = ValueError("a storm")


def test_a_step_that_has_failed_gives_none_and_what_follows_goes_on() -> None:
    process = ended(Outing, forecast=STORM)

    assert (process.status, process.result) == ("completed", "plan by None and none")
    assert calls == {"book": 1, "forecast": 2, "plan": 1}


def test_its_failure_is_seen_and_nobody_is_asked() -> None:
    process = ended(Outing, forecast=STORM)

    run = row(process)
    assert (run.status, run.result) == ("skipped", None)
    assert run.error.endswith("ValueError: a storm\n")
    assert not Incident.objects.exists()


def test_a_step_that_has_not_failed_gives_its_result() -> None:
    assert ended(Outing).result == "plan by forecast and none"


def test_a_step_that_declines_undoes_nothing() -> None:
    process = ended(Outing, forecast=Permanent("no forecast"))

    assert process.status == "completed"
    assert calls == {"book": 1, "forecast": 1, "plan": 1}


@pytest.mark.parametrize("how", [Lost.TIMED_OUT, Lost.DIED])
def test_a_step_that_has_lost_its_workers_gives_none(how: Lost) -> None:
    process = Process(start_process(Parting).process_id)
    lose(how)
    lose(how)
    process.finish()

    assert process.result == "traffic"
    assert process.result_of("left") == "plan by None and none"
    assert calls == {"plan": 2, "traffic": 1}


NOT_THERE: dict[str, Exception] = {"forecast": STORM}
RESULTS: list[tuple[type[Workflow], dict[str, Exception], Any]] = [
    (Ending, NOT_THERE, None),
    (Parting, NOT_THERE, "traffic"),
    (Strict, NOT_THERE, "plan by None and traffic"),
    (Caught, NOT_THERE, {"plan": "plan by None and none"}),
    (Caught, {"forecast": Permanent("no")}, {"tell": "Permanent 1"}),
    (Looping, {}, "0 seen"),
    (Doubting, {}, "it is None"),
    (Stored, NOT_THERE, "plan by None and none"),
    (Abroad, {"book": STORM}, "plan by None and none"),
    (Abroad, {"book": Permanent("no")}, "plan by None and none"),
]


def test_wherever_an_optional_step_stands_its_process_goes_on() -> None:
    found = []
    for definition, errors, _ in RESULTS:
        calls.clear()
        wrong.clear()
        found.append((definition, errors, ended(definition, **errors).result))

    assert found == RESULTS
    assert not Incident.objects.open().exists()


def test_a_person_may_have_an_optional_step_done_again() -> None:
    wrong["forecast"] = STORM
    process = started(Asking)
    pass_time(seconds=1)
    wrong.clear()
    redo(process.id, "forecast", request=asked())
    process.answer("go", Answer.YES)

    assert process.result == "plan by forecast and none"
