"""The oracle finds what is planted in workflows: each broken row is seen, named, and told by the right rule."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone
from uuid6 import uuid7

from orchestrator import start_process
from orchestrator.definition import Workflow
from orchestrator.engine.invariants import CHECKS, violations
from orchestrator.models import Checkpoint, Incident, ProcessInstance, StepKind, StepRun
from orchestrator.testing import registered
from orchestrator.testing import run as run_due
from tests.apps.random_graphs import journeys
from tests.engine.test_engine_invariants import IN_A_TOWN
from tests.services.invariants import broken, undone

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

NOW = timezone.now()
LONG_AGO = NOW - timedelta(minutes=5)
OPEN = {"status": "ready", "wake_at": NOW}
GIVEN_UP = {"status": "cancelled", "finished_at": NOW}
COMPLETED = {"status": "completed", "finished_at": NOW}
BLOCKED = {"blocked": "redo", "blocked_on": "pack"}
ONE_OF_THREE = {"done": 1, "failed": 0, "total": 3}
Defect = Callable[[ProcessInstance], object]


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    """Let the running code have these workflows; for a whole module, as the invariants need them after each test."""
    with registered(*STORIES.values(), journeys.Errand, journeys.Visit):
        yield


STORIES: dict[str, type[Workflow]] = {
    "journey": journeys.Journey,
    "standstill": journeys.Standstill,
    "taken back": journeys.TakenBack,
}


def far(definition: type[Workflow]) -> ProcessInstance:
    """Return a process that has come as far as it can by itself."""
    process_id = start_process(definition, definition.Input()).process_id
    run_due()
    assert violations() == []
    assert process_id is not None
    return ProcessInstance.objects.get(pk=process_id)


def mine(process: ProcessInstance) -> Any:
    return ProcessInstance.objects.filter(pk=process.pk)


def run(process: ProcessInstance, node: str, **more: Any) -> Any:
    return StepRun.objects.filter(instance=process, node=node, **more)


def head(process: ProcessInstance, node: str) -> Any:
    return run(process, node, kind=StepKind.MAP)


def item(process: ProcessInstance, node: str, index: int) -> Any:
    return run(process, node, item=index)


def first(process: ProcessInstance) -> Any:
    return item(process, "stranded", 0)


def undo(process: ProcessInstance, node: str) -> Any:
    return run(process, node, kind=StepKind.UNDO)


def child(process: ProcessInstance) -> Any:
    return ProcessInstance.objects.filter(parent=process.pk)


def open_run(process: ProcessInstance, node: str, **more: Any) -> StepRun:
    values = {"kind": "step", "started_at": NOW, "entered": 1, **OPEN, **more}
    return StepRun.objects.create(instance=process, node=node, **values)


def twice(process: ProcessInstance, node: str) -> None:
    """Store a finished visit a second time."""
    copy = run(process, node).get()
    copy.pk, copy.visit = None, copy.visit + 1
    copy.save(force_insert=True)


def swap(process: ProcessInstance) -> None:
    """Exchange the order in which two steps were undone."""
    one, other = undo(process, "buy").get(), undo(process, "book").get()
    undo(process, "buy").update(left=other.left)
    undo(process, "book").update(left=one.left)


def reverse(process: ProcessInstance) -> None:
    """Undo the first step first."""
    undo(process, "buy").update(visit=9)
    undo(process, "book").update(node="buy")
    undo(process, "buy").filter(visit=9).update(node="book", visit=1)


def point(process: ProcessInstance, revision: int) -> Any:
    return Checkpoint.objects.filter(instance=process, revision=revision)


PLANTED: dict[str, dict[str, dict[str, Defect]]] = {
    "journey": {
        "dense_history": {
            "a checkpoint is missing": lambda p: point(p, 3).delete(),
        },
        "model": {
            "a checkpoint was altered": lambda p: point(p, 3).update(data={"a": 1}),
            "the input was altered": lambda p: mine(p).update(data={"a": 1}),
            "a checkpoint names a step run that is gone": lambda p: point(p, 3).update(cause="step:999999999"),
            "a checkpoint names a step run settled elsewhere": lambda p: run(p, "leave").update(left=F("left") + 50),
            "a visit is missing": lambda p: run(p, "leave").delete(),
            "a visit that waits is missing": lambda p: run(p, "stay").delete(),
            "a visit too many": lambda p: twice(p, "leave"),
            "a visit that nothing leads to": lambda p: open_run(p, "home"),
            "a step is not in the graph": lambda p: run(p, "ride").update(node="fly"),
            "a loop goes round once too often": lambda p: open_run(p, "rest", visit=3),
            "a visit of a loop is missing": lambda p: run(p, "rest", visit=2).delete(),
            "a step started before what it needs was settled": lambda p: run(p, "leave").update(entered=2),
            "the branch that was not taken is not marked": lambda p: run(p, "sail").delete(),
            "a branch that was taken says that it was not": lambda p: run(p, "ride").update(status="not_taken"),
            "a branch that was not taken was run": lambda p: run(p, "sail").update(status="done"),
        },
        "joins": {
            "a join has counted a branch twice": lambda p: run(p, "leave").update(arrived=3),
            "a join counts a branch that was not taken": lambda p: run(p, "arrive").update(taken=2),
        },
        "maps": {
            "a map has lost an element": lambda p: item(p, "see", 1).delete(),
            "a map expects another number": lambda p: head(p, "see").update(expected=4),
            "a map is over and an element is open": lambda p: item(p, "see", 1).update(**OPEN, finished_at=None),
        },
        "progress": {
            "open steps are counted wrongly": lambda p: mine(p).update(open_steps=2),
            "nothing is open": lambda p: run(p, "stay").update(finished_at=NOW),
            "it has ended and a step is open": lambda p: mine(p).update(finished_at=NOW),
        },
        "fences": {
            "a settled step is still held": lambda p: run(p, "leave").update(owner="worker"),
            "a settled step will be run again": lambda p: run(p, "leave").update(wake_at=NOW + timedelta(hours=1)),
        },
        "results": {
            "a result was altered": lambda p: run(p, "ride").update(result=4),
            "a checksum was altered": lambda p: run(p, "ride").update(checksum="0" * 64),
            "a result has no checksum": lambda p: run(p, "ride").update(checksum=""),
            "the result of an element was altered": lambda p: item(p, "see", 1).update(result=4),
        },
        "audit": {
            "an operator's effect has no audit row": lambda p: point(p, 3).update(cause=f"operator:{uuid7()}"),
        },
    },
    "standstill": {
        "model": {
            "a step was cancelled without a reason": lambda p: run(p, "called").update(**GIVEN_UP, left=p.revision),
            "a join has started too early": lambda p: run(p, "meet").update(kind="step", **OPEN),
        },
        "joins": {
            "a join has lost a branch": lambda p: run(p, "meet").update(arrived=0),
        },
        "maps": {
            "a map shows what was not done": lambda p: head(p, "stranded").update(progress=ONE_OF_THREE),
            "a map is over too early": lambda p: head(p, "stranded").update(status="done", finished_at=NOW),
        },
        "progress": {
            "ready work is seen by nobody": lambda p: run(p, "stay").update(status="ready"),
            "a retry has no time": lambda p: first(p).update(wake_at=None),
            "a step waits for nothing": lambda p: run(p, "stay").update(kind="step"),
            "a step waits for a redo that nobody does": lambda p: run(p, "stay").update(**BLOCKED),
            "elements wait and none is under way": lambda p: first(p).update(status="waiting", wake_at=None, error=""),
            "a map waits and has no open element": lambda p: run(p, "stranded", kind="item").update(finished_at=NOW),
            "a join waits and no branch is open": lambda p: run(p, "stay").update(**GIVEN_UP),
            "a sub-process has ended and its step was not told": lambda p: child(p).update(**COMPLETED),
            "a failed step is told to nobody": lambda p: Incident.objects.all().delete(),
            "a settled step is open": lambda p: run(p, "stay").update(status="done"),
        },
        "outbox": {
            "due work has been taken by nobody": lambda p: first(p).update(wake_at=LONG_AGO),
        },
        "sub_processes": {
            "a sub-process names another parent": lambda p: child(p).update(parent=child(p).get().pk),
            "a sub-process is run by no step": lambda p: run(p, "called").update(child=None),
            "a sub-process goes on and nothing waits for it": lambda p: run(p, "called").update(finished_at=NOW),
            "two steps run one sub-process": lambda p: run(p, "stay").update(child=child(p).get().pk),
        },
    },
    "taken back": {
        "undoing": {
            "a finished step was not undone": lambda p: undo(p, "book").delete(),
            "a step was undone twice": lambda p: open_run(p, "book", kind="undo", round=2),
            "a step was undone that was not done": lambda p: run(p, "book", kind="step").update(status="skipped"),
            "the first step was undone first": reverse,
            "a step was undone before its turn": swap,
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_defects_are_found(story: str, subtests: pytest.Subtests) -> None:
    """Plants them one after the other in one process, which is whole again after each."""
    compared = set[str]()
    process = far(STORIES[story])
    for rule, defects in PLANTED[story].items():
        for name, defect in defects.items():
            with subtests.test(name), undone():
                defect(process)
                found = broken()  # as it is asked after each test
                assert rule in {line.partition(":")[0] for line in found}
                if rule not in compared:
                    compared.add(rule)
                    assert violations() == found


def test_every_rule_about_workflows_has_a_defect_that_it_finds() -> None:
    elsewhere = {"conservation", "references", "parked", *IN_A_TOWN}
    about = {check.__name__ for check in CHECKS} - elsewhere

    assert set(PLANTED) == set(STORIES)
    assert about == {rule for rules in PLANTED.values() for rule in rules}
