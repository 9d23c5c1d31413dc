"""Whatever the application may decide, it is watched: a hang is ended, and what ends its workers is given up."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import pytest

from orchestrator import start_process
from orchestrator.definition import (
    Workflow,
    ask,
    case,
    each,
    route,
    sleep,
    start,
    step,
    then,
)
from orchestrator.definition.workflow.rows import FlowRow
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change.workflows import settling
from orchestrator.engine.operations import retry
from orchestrator.engine.sql.batch import database_now, send
from orchestrator.engine.steps.attempts import MOST_STARTS
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.application_code import errors
from orchestrator.engine.work import leases, take_over
from orchestrator.exceptions import ExitRefused, Skip
from orchestrator.models import Lost, ProcessInstance, StepKind, StepRun
from orchestrator.workers.shared_memory.claims import parse_results
from tests.apps.patterns.desk import statuses
from tests.apps.watched.doubled import Numbers, doubled, given, total
from tests.services.operated import knowing, operated
from tests.services.supervised import Supervised, unhurried

__all__ = ["unhurried"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("unhurried"),
]

looking: list[Callable[[], object]] = []
"""What is done when the application is asked."""


class Killed(BaseException):
    """As if the worker were killed."""


class Asked:
    """A worker, what it was at, and which results it held whenever it asked the application."""

    def __init__(self, *, deadly: bool = False) -> None:
        self.worker = Supervised()
        self.deadly = deadly
        self.at: list[str] = []
        self.held = ""
        looking[:] = [self._look]

    def _look(self) -> None:
        self.at.append(self.worker.slot.work)
        self.held = self.worker.shown.results.read().text
        if self.deadly:
            raise Killed

    def drain(self) -> None:
        self.worker.drain("default")


def look() -> None:
    for one in looking:
        one()


def many(numbers: list[int]) -> bool:
    look()
    return True


def yes() -> str:
    return "yes"


def no() -> str:
    return "no"


decision = route(doubled, case(many, to=yes), otherwise=no)


class Mapped(Workflow):
    """The application is asked about the results of a map."""

    Input = Numbers
    flow = (each(given, over="", do=doubled, into=total, tolerate=1), decision)


class MappedStrictly(Workflow):
    """The same; none of its elements may fail."""

    Input = Numbers
    flow = (each(given, over="", do=doubled, into=total), decision)


@dataclass(frozen=True)
class Number:
    number: int = 1


def one(number: int) -> int:
    if number == 13:
        raise Skip("bad luck", result=13)
    return number


def odd(number: int) -> bool:
    look()
    return True


class Routed(Workflow):
    """The application is asked about the result of a step, also of one that passed itself over."""

    Input = Number
    flow = (start(one), route(one, case(odd, to=yes), otherwise=no))


def made(*steps: Any) -> Any:
    """Return a flow that the application makes whenever it is asked for it."""

    def flow(input: Number) -> list[FlowRow]:
        look()
        return [then(*steps)]

    return staticmethod(flow)


class Made(Workflow):
    """The application makes the graph."""

    Input = Number
    flow = made(step(one), step(one, "again"))


class Choice(StrEnum):
    GO = "go"


hour = timedelta(hours=1)


class MadeAsleep(Workflow):
    """The same; it is asked for it when a sleep is over."""

    Input = Number
    flow = made(sleep(hour, "rest"), step(one))


class MadeToAsk(Workflow):
    """The same; it is asked for it when a deadline has passed."""

    Input = Number
    flow = made(ask("rest", Choice, deadline=hour), step(one))


known = knowing(Mapped, MappedStrictly, Routed, Made, MadeAsleep, MadeToAsk)


@pytest.fixture(autouse=True)
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the graphs be made anew in each test, and the invariants ask whatever they like after it."""
    usual = errors.refuse_exit

    def refuse_exit(name: str, ending: BaseException) -> ExitRefused:
        if isinstance(ending, Killed):
            raise ending  # no exception of a function ends a worker
        return usual(name, ending)

    monkeypatch.setattr(errors, "refuse_exit", refuse_exit)
    looking.clear()
    definitions.forget_definitions()
    yield
    looking.clear()


def begun(definition: type[Workflow], given: Any) -> ProcessInstance:
    """Start a process, and forget its graph as in another worker."""
    receipt = start_process(definition, given)
    definitions.forget_definitions()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def falls_due(process: ProcessInstance) -> StepRun:
    """Let the only open visit be due now."""
    process.step_runs.filter(finished_at=None).update(wake_at=database_now())
    run: StepRun = process.step_runs.get(finished_at=None)
    return run


def lost() -> Asked | None:
    """Have a worker die when it asks the application, and its supervisor see that; None if it asks nothing."""
    definitions.forget_definitions()
    dying = Asked(deadly=True)
    try:
        dying.drain()
    except Killed:
        owner, work = dying.worker.owner, dying.at[-1]
        send(take_over.result_writes(owner, parse_results(dying.held)))
        leases.end_leases([owner], running={work: Lost.DIED} if work else {})
        return dying
    return None


def work_of(run: StepRun) -> str:
    return leases.work_name(run)


def watched(process: ProcessInstance) -> list[str]:
    """Run a process with a worker; return what that was at whenever it asked the application."""
    worker = Asked()
    worker.drain()
    process.refresh_from_db()
    return worker.at


# It is watched


@pytest.mark.parametrize(
    "numbers", [[], [1, 2, 3], [1, 2, 13], [1, 2, 14], [*range(60)]]
)
def test_a_condition_on_a_maps_results_is_asked_under_watch(numbers: list[int]) -> None:
    process = begun(Mapped, Numbers(numbers))
    at = watched(process)

    assert (process.status, statuses(process)["yes"]) == ("completed", "done")
    works = {work_of(run) for run in process.step_runs.exclude(kind=StepKind.MAP)}
    assert at
    assert set(at) <= works


def test_a_maps_elements_share_commits_also_where_a_condition_follows() -> None:
    process = begun(Mapped, Numbers([*range(100, 160)]))
    watched(process)

    assert process.status == "completed"
    assert process.revision < 20


@pytest.mark.parametrize(
    ("definition", "number", "last"),
    [(Routed, 1, "yes"), (Routed, 13, "yes"), (Made, 1, "again")],
)
def test_a_condition_on_a_result_is_asked_and_a_graph_is_made_under_watch(
    definition: type[Workflow], number: int, last: str
) -> None:
    process = begun(definition, Number(number))
    at = watched(process)

    assert (process.status, statuses(process)[last]) == ("completed", "done")
    assert at == [work_of(process.step_runs.get(node="one"))]


@pytest.mark.parametrize("definition", [MadeAsleep, MadeToAsk])
def test_a_graph_made_at_a_deadline_is_watched(definition: type[Workflow]) -> None:
    process = begun(definition, Number())
    run = falls_due(process)

    assert watched(process) == [work_of(run)]


# It is given up


def given_up(process: ProcessInstance, said: str) -> None:
    """Have workers die of a process in all its attempts, and people told so."""
    falls_due(process)
    attempts = Policy().attempts()
    assert [bool(lost()) for _ in range(attempts + 1)] == [True] * attempts + [False]
    assert said in process.incidents.open().get().message
    process.refresh_from_db()


def retried(process: ProcessInstance) -> ProcessInstance:
    looking.clear()
    return operated(retry, process)


@pytest.mark.parametrize("definition", [Mapped, MappedStrictly])
def test_a_map_whose_condition_kills_its_workers_is_given_up_until_it_is_retried(
    definition: type[Workflow], monkeypatch: pytest.MonkeyPatch
) -> None:
    process = begun(definition, Numbers([1, 2, 3]))
    with monkeypatch.context() as deadly:  # an exception in a condition ends no worker
        deadly.setattr(settling, "_result", lambda *_: look())
        deaths = sum(bool(lost()) for _ in range(20))

    process.refresh_from_db()
    assert (process.status, deaths < 10) == ("failed", True)
    assert retried(process).status == "completed"


def test_a_sleep_whose_end_kills_its_workers_is_given_up_until_it_is_retried() -> None:
    process = begun(MadeAsleep, Number())
    given_up(process, "WorkerDied")

    assert process.status == "failed"
    assert retried(process).status == "completed"


def test_a_question_whose_deadline_kills_its_workers_waits_on_until_retried() -> None:
    process = begun(MadeToAsk, Number())
    given_up(process, "the worker died")
    run = falls_due(process)
    assert lost() is None

    run.refresh_from_db()
    assert (run.status, run.owner) == ("waiting", "")
    retried(process)
    run.refresh_from_db()
    assert run.deadlines_fired == 1


def test_a_visit_that_kills_its_workers_while_its_graph_is_made_is_given_up() -> None:
    process = begun(Made, Number())
    assert lost()
    process.step_runs.update(attempt=MOST_STARTS - 1)
    assert lost()
    assert lost() is None

    process.refresh_from_db()
    assert process.status == "failed"
    assert "WorkerDied" in process.incidents.open().get().message
