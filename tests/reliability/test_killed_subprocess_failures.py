"""Parts of processes fail, three deep and in maps, while workers are killed: a rule or a Retry takes each failure."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db.models import QuerySet

from orchestrator import start_process
from orchestrator.definition import Workflow
from orchestrator.engine.invariants import violations
from orchestrator.engine.operations import ActionRequest, refusals, retry
from orchestrator.exceptions import OperationRefused
from orchestrator.models import Incident, ProcessInstance, Status, StepRun, StepStatus
from tests.apps.broken_parts import processes as p
from tests.apps.broken_parts.steps import Job, is_bad, mend, unmend
from tests.reliability.storm import Storm
from tests.services.crews import knowing
from tests.services.sizes import size
from tests.services.workers import Workers

OF_EACH = size(2, full=20)
ELEMENTS = 4
BAD = ELEMENTS // 2


parts = knowing(*p.WORKFLOWS)


@pytest.fixture(autouse=True)
def unmended() -> Iterator[None]:
    """All parts break that can."""
    unmend()
    yield
    unmend()


def named(*definitions: type[Workflow]) -> list[str]:
    return [definition.name for definition in definitions]


def on_top(*definitions: type[Workflow]) -> dict[str, list[str]]:
    """Return the statuses of the processes that are no sub-processes, by definition."""
    rows = ProcessInstance.objects.filter(name__in=named(*definitions), parent=None)
    found: dict[str, list[str]] = {name: [] for name in named(*definitions)}
    for name, status in rows.order_by("pk").values_list("name", "status"):
        found[name].append(status)
    return found


def expected_of(definition: type[Workflow], status: Status) -> list[str]:
    """Return how the processes of a definition stand, in order: those whose parts are all good have completed."""
    bad = [definition is not p.Strict or is_bad(number) for number in range(OF_EACH)]
    return [status if one else Status.COMPLETED for one in bad]


def all_stand() -> bool:
    """Tell whether what has a rule has completed, and the rest waits for people."""
    taken = {one.name: expected_of(one, Status.COMPLETED) for one in p.TAKEN}
    standing = {one.name: expected_of(one, Status.FAILED) for one in p.STANDING}
    bad = StepRun.objects.filter(node="piece", instance__name=p.StrictMap.name)
    failed = bad.filter(status=StepStatus.FAILED, finished_at=None).count()
    return on_top(*p.TAKEN, *p.STANDING) == taken | standing and failed == OF_EACH * BAD


def press_retry_somewhere(person: User, dice: random.Random) -> None:
    """Press Retry of one member of each family that has failed: of a map that revives one element, or all of them."""
    for process in ProcessInstance.objects.filter(parent=None, status=Status.FAILED):
        family = [process]
        while below := list(family[-1].children.filter(status=Status.FAILED)):
            family.append(dice.choice(below))
        wanted = ActionRequest(person, uuid4(), "it is mended")
        with suppress(OperationRefused):  # it goes on already
            retry(dice.choice(family).pk, request=wanted)


def all_are_mended(person: User, dice: random.Random) -> bool:
    press_retry_somewhere(person, dice)
    return not ProcessInstance.objects.live().exists()


def parts_of(*definitions: type[Workflow]) -> QuerySet[ProcessInstance]:
    """Return the direct sub-processes of the processes of these definitions."""
    return ProcessInstance.objects.filter(parent__name__in=named(*definitions))


def ends_of(definition: type[Workflow]) -> Counter[str]:
    """Return how the direct sub-processes have ended."""
    return Counter(parts_of(definition).values_list("status", flat=True))


def results_of(definition: type[Workflow], node: str) -> list[object]:
    """Return what the visits of a step have given in all processes of a definition, in the order of the processes."""
    runs = StepRun.objects.filter(instance__name=definition.name, node=node)
    done = runs.filter(status=StepStatus.DONE).order_by("instance")
    return list(done.values_list("result", flat=True))


@pytest.mark.full_size("20 of each of 5 workflows", seconds=600)
def test_each_failure_of_a_part_is_taken_once_though_workers_are_killed(
    hands: Workers, administrator: User
) -> None:
    for number in range(OF_EACH):
        start_process(p.Strict, Job(number))
        start_process(p.Caught, Job(number))
        for definition in (p.StrictMap, p.Tolerant, p.CaughtMap):
            start_process(definition, Job(parts=ELEMENTS))
    with Storm(hands, 0.7, steps=4, seed=3).raging() as until:
        until(all_stand, 60)
        found_meanwhile = violations()
        mend()
        until(partial(all_are_mended, administrator, random.Random(3)), 60)

    assert (found_meanwhile, violations()) == ([], [])
    assert not Incident.objects.open().exists()
    top = ProcessInstance.objects.filter(parent=None)
    assert set(top.values_list("status", flat=True)) == {Status.COMPLETED}
    bad = OF_EACH // 2
    assert ends_of(p.Strict) == {"completed": OF_EACH}
    assert ends_of(p.Caught) == {"completed": OF_EACH - bad, "cancelled": bad}
    explained = [str(told) for told in results_of(p.Caught, "explain")]
    assert len(explained) == bad
    assert all(told.endswith(" is broken") for told in explained)
    assert ends_of(p.StrictMap) == {"completed": ELEMENTS * OF_EACH}
    assert results_of(p.StrictMap, "total") == [60] * OF_EACH
    well, badly = (ELEMENTS - BAD) * OF_EACH, BAD * OF_EACH
    assert ends_of(p.Tolerant) == {"completed": well, "cancelled": badly}
    assert results_of(p.Tolerant, "total") == [20] * OF_EACH
    assert parts_of(p.CaughtMap).count() == ELEMENTS * OF_EACH
    assert len(results_of(p.CaughtMap, "explain")) == OF_EACH
    left = parts_of(p.Caught, p.Tolerant).filter(status="cancelled")
    told = {said["retry"] for said in refusals(left, administrator).values()}
    assert told == {"Its parent went on"}
