"""Visits that a worker has claimed: which of them it begins, what shares a change, and what is tried again."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from orchestrator import registry, start_process
from orchestrator.definition import (
    Event,
    Workflow,
    ask,
    case,
    each,
    join,
    route,
    run,
    start,
    step,
    wait,
)
from orchestrator.definition.workflow.steps import Step
from orchestrator.engine.operations import cancel
from orchestrator.engine.sql.tables import instances, step_runs
from orchestrator.engine.steps.attempts import MOST_STARTS
from orchestrator.engine.steps.quick_results import QuickResults
from orchestrator.engine.steps.runner import CLAIMED, StepRunner
from orchestrator.engine.steps.session import Session
from orchestrator.engine.work import leases
from orchestrator.engine.work.worker_slice import UNSEEN, WorkerSlice
from orchestrator.models import Lost, StepKind, StepRun
from orchestrator.queue import suppress_all_wakes
from orchestrator.testing import found, pass_time, started
from orchestrator.testing import run as run_due
from tests.services.asking import asked
from tests.services.crews import knowing
from tests.services.supervised import quick

__all__ = ["quick"]

pytestmark = pytest.mark.django_db

calls = Counter[str]()


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    calls.clear()


class Answer(StrEnum):
    YES = "yes"


class Rung(Event):
    number: int = 1


@dataclass(frozen=True)
class Order:
    number: str = "A-1"


def read() -> str:
    calls["read"] += 1
    return "read"


def look() -> str:
    calls["look"] += 1
    return "looked"


def conclude() -> str:
    calls["conclude"] += 1
    return "concluded"


def parts() -> list[int]:
    return [*range(6)]


def weigh(item: int) -> int:
    return item


def total(weigh: list[int]) -> int:
    return sum(weigh)


def are_light(weights: list[int]) -> bool:
    calls["are_light"] += 1
    return sum(weights) < 100


class Reads(Workflow):
    """One step."""

    flow = (step(read),)


class MadeToRead(Workflow):
    """The same; the graph is made from the input."""

    Input = Order

    @staticmethod
    def flow(input: Order) -> list[Step]:
        return [step(read)]


class First(Workflow):
    """The first of two steps is enough; no result is held, as none of them may be called twice."""

    flow = (
        start(step(read, idempotent=False), step(look, idempotent=False)),
        join(
            read,
            look,
            into=step(conclude, idempotent=False),
            wait_for="any",
            rest="cancel",
        ),
    )


class Weighs(Workflow):
    """A condition on all results of a map decides what follows it."""

    flow = (
        each(parts, over="", do=weigh, into=total),
        route(weigh, case(are_light, to=conclude), otherwise=look),
    )


class Inner(Workflow):
    """A sub-process that waits for an answer, one for each order."""

    Input = Order
    correlation = "number"
    flow = (ask("verdict", Answer),)


class Outer(Workflow):
    """Runs a sub-process."""

    Input = Order
    flow = (run(Inner, "inner"),)


class Rings(Workflow):
    """Waits for an event, and people are told when it is late."""

    flow = (wait(Rung, "ring", deadline=timedelta(hours=1)),)


known = knowing(Reads, MadeToRead, First, Weighs, Inner, Outer, Rings)


def session_of(run: StepRun) -> Session | None:
    return Session.of(run, WorkerSlice("default", "A"), QuickResults(UNSEEN))


# Before it begins


def test_a_visit_whose_process_is_gone_does_not_begin() -> None:
    assert session_of(StepRun(instance_id=uuid4(), node="read")) is None


@pytest.mark.parametrize(("definition", "lost"), [(Reads, Lost.DIED), (MadeToRead, "")])
def test_only_a_graph_that_has_ended_its_workers_is_not_made_again(
    definition: type[Workflow], lost: str
) -> None:
    with suppress_all_wakes():
        process_id = start_process(definition, definition.Input()).process_id
    often: dict[str, Any] = {"attempt": MOST_STARTS + 1, "lost": lost}

    assert session_of(StepRun(instance_id=process_id, node="read", **often))


def test_a_visit_does_not_begin_once_another_one_has_ended_its_process() -> None:
    process = started(First)

    assert (process.status, calls) == ("completed", {"read": 1, "conclude": 1})


def test_a_visit_that_was_long_in_preparation_is_claimed_again_uncharged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = iter([True])
    monkeypatch.setattr(leases, "lease_may_end", lambda since: next(late, False))
    process = started(Reads)

    assert (process.status, calls["read"]) == ("completed", 1)
    assert StepRun.objects.get().attempt == 1


# Maps


def test_elements_that_a_worker_has_claimed_together_share_a_change(
    quick: None,
) -> None:
    """Only the last element of the map has a change of its own, as the condition is asked about it."""
    with suppress_all_wakes():
        start_process(Weighs)
    runner = StepRunner(WorkerSlice("default", "A"))
    for number in (1, 3):  # the list with one element, and three more
        for item in step_runs.claim("default", "A", number, 600, **CLAIMED):
            runner.run(item.work)
        runner.store()
    done = StepRun.objects.filter(kind=StepKind.ITEM, status="done")

    assert sorted(Counter(done.values_list("left", flat=True)).values()) == [1, 3]
    run_due()
    assert (found(Weighs).status, calls["conclude"]) == ("completed", 1)


# Sub-processes


def test_a_step_that_is_called_before_its_sub_process_has_ended_waits_on() -> None:
    process = started(Outer, Order())
    StepRun.objects.filter(kind=StepKind.RUN).update(wake_at=timezone.now())
    run_due()

    visit = StepRun.objects.get(kind=StepKind.RUN)
    assert (process.status, visit.status, visit.error) == ("waiting", "waiting", "")


def test_a_sub_process_whose_key_is_free_after_all_is_started_by_another_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other, usual = started(Inner, Order()), instances.check_free

    def check_late(*named: str) -> None:
        cancel(other.id, request=asked())
        usual(*named)

    with monkeypatch.context() as patch:
        patch.setattr(instances, "check_free", check_late)
        process = started(Outer, Order())
    assert (process.status, process.children) == ("retrying", [])
    pass_time(minutes=1)

    assert (process.status, len(process.children)) == ("waiting", 1)


# Deadlines


def test_a_deadline_that_is_carried_out_at_last_shows_no_earlier_error() -> None:
    process = started(Rings)
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(registry.definitions, (Rings.name, Rings.version))
        pass_time(hours=1)
    assert "no definition rings" in StepRun.objects.get().error
    pass_time(minutes=1)

    assert (process.instance.escalation_level, process.incidents) == (1, [])
    assert StepRun.objects.get().error == ""
