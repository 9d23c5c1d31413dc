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
from orchestrator.engine.drain import drain
from orchestrator.engine.invariants import CHECKS, violations
from orchestrator.models import (
    Checkpoint,
    Incident,
    OperatorAction,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.testing import registered
from tests.apps.random_graphs import journeys
from tests.apps.random_graphs.processes import RandomGraph
from tests.apps.random_graphs.steps import Dice
from tests.services.invariants import broken, undone

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

NOW = timezone.now()
Defect = Callable[[ProcessInstance], object]


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    """Let the running code have these workflows; for a whole module, as the invariants need them after each test."""
    with registered(*STORIES.values(), journeys.Errand, journeys.Visit, RandomGraph):
        yield


STORIES: dict[str, type[Workflow]] = {
    "journey": journeys.Journey,
    "standstill": journeys.Standstill,
    "taken back": journeys.TakenBack,
}


def far(definition: type[Workflow]) -> ProcessInstance:
    """Return a process that has come as far as it can by itself."""
    process_id = start_process(definition, definition.Input()).process_id
    while drain():
        pass
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


def undo(process: ProcessInstance, node: str) -> Any:
    return run(process, node, kind=StepKind.UNDO)


def child(process: ProcessInstance) -> Any:
    return ProcessInstance.objects.filter(parent=process.pk)


def open_run(process: ProcessInstance, node: str, **more: Any) -> StepRun:
    values = {"status": "ready", "wake_at": NOW, "kind": "step", **more}
    return StepRun.objects.create(
        instance=process, node=node, started_at=NOW, entered=1, **values
    )


def twice(process: ProcessInstance, node: str, **more: Any) -> None:
    """Store a finished visit a second time."""
    copy = run(process, node).get()
    copy.pk, copy.visit = None, copy.visit + 1
    for name, value in more.items():
        setattr(copy, name, value)
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


PLANTED: list[tuple[str, str, str, Defect]] = [
    # The history
    ("a checkpoint is missing", "dense_history", "journey", lambda p: point(p, 3).delete()),
    ("a checkpoint was altered", "model", "journey", lambda p: point(p, 3).update(data={"a": 1})),
    ("the input was altered", "model", "journey", lambda p: mine(p).update(data={"a": 1})),
    (
        "a checkpoint names a step run that is gone",
        "model",
        "journey",
        lambda p: point(p, 3).update(cause="step:999999999"),
    ),
    (
        "a checkpoint names a step run that was settled elsewhere",
        "model",
        "journey",
        lambda p: run(p, "leave").update(left=F("left") + 50),
    ),
    ("a visit is missing", "model", "journey", lambda p: run(p, "leave").delete()),
    ("a visit that waits is missing", "model", "journey", lambda p: run(p, "stay").delete()),
    ("a visit too many", "model", "journey", lambda p: twice(p, "leave")),
    ("a visit that nothing leads to", "model", "journey", lambda p: open_run(p, "home")),
    ("a step is not in the graph", "model", "journey", lambda p: run(p, "ride").update(node="fly")),
    ("a loop goes round once too often", "model", "journey", lambda p: open_run(p, "rest", visit=3)),
    ("a visit of a loop is missing", "model", "journey", lambda p: run(p, "rest", visit=2).delete()),
    (
        "a step started before what it needs was settled",
        "model",
        "journey",
        lambda p: run(p, "leave").update(entered=2),
    ),
    ("the branch that was not taken is not marked", "model", "journey", lambda p: run(p, "sail").delete()),
    (
        "a branch that was taken says that it was not",
        "model",
        "journey",
        lambda p: run(p, "ride").update(status=StepStatus.NOT_TAKEN),
    ),
    (
        "a branch that was not taken was run",
        "model",
        "journey",
        lambda p: run(p, "sail").update(status=StepStatus.DONE),
    ),
    (
        "a step was cancelled without a reason",
        "model",
        "standstill",
        lambda p: run(p, "called").update(
            status=StepStatus.CANCELLED, finished_at=NOW, left=p.revision
        ),
    ),
    # Joins and maps
    ("a join has counted a branch twice", "joins", "journey", lambda p: run(p, "leave").update(arrived=3)),
    ("a join has lost a branch", "joins", "standstill", lambda p: run(p, "meet").update(arrived=0)),
    ("a join counts a branch that was not taken", "joins", "journey", lambda p: run(p, "arrive").update(taken=2)),
    (
        "a join has started too early",
        "model",
        "standstill",
        lambda p: run(p, "meet").update(kind="step", status="ready", wake_at=NOW),
    ),
    ("a map has lost an element", "maps", "journey", lambda p: item(p, "see", 1).delete()),
    ("a map expects another number", "maps", "journey", lambda p: head(p, "see").update(expected=4)),
    (
        "a map shows what was not done",
        "maps",
        "standstill",
        lambda p: head(p, "stranded").update(
            progress={"done": 1, "failed": 0, "total": 3}
        ),
    ),
    (
        "a map is over and an element is open",
        "maps",
        "journey",
        lambda p: item(p, "see", 1).update(
            status="ready", finished_at=None, wake_at=NOW
        ),
    ),
    (
        "a map is over too early",
        "maps",
        "standstill",
        lambda p: head(p, "stranded").update(status="done", finished_at=NOW),
    ),
    # Progress
    ("open steps are counted wrongly", "progress", "journey", lambda p: mine(p).update(open_steps=2)),
    ("nothing is open", "progress", "journey", lambda p: run(p, "stay").update(finished_at=NOW)),
    ("it has ended and a step is open", "progress", "journey", lambda p: mine(p).update(finished_at=NOW)),
    ("ready work is seen by nobody", "progress", "standstill", lambda p: run(p, "stay").update(status="ready")),
    ("a retry has no time", "progress", "standstill", lambda p: item(p, "stranded", 0).update(wake_at=None)),
    ("a step waits for nothing", "progress", "standstill", lambda p: run(p, "stay").update(kind="step")),
    (
        "a step waits for a redo that nobody does",
        "progress",
        "standstill",
        lambda p: run(p, "stay").update(blocked="redo", blocked_on="pack"),
    ),
    (
        "elements wait and none is under way",
        "progress",
        "standstill",
        lambda p: item(p, "stranded", 0).update(
            status="waiting", wake_at=None, error=""
        ),
    ),
    (
        "a map waits and has no open element",
        "progress",
        "standstill",
        lambda p: run(p, "stranded", kind=StepKind.ITEM).update(finished_at=NOW),
    ),
    (
        "a join waits and no branch is open",
        "progress",
        "standstill",
        lambda p: run(p, "stay").update(finished_at=NOW, status="cancelled"),
    ),
    (
        "a sub-process has ended and its step was not told",
        "progress",
        "standstill",
        lambda p: child(p).update(finished_at=NOW, status="completed"),
    ),
    ("a failed step is told to nobody", "progress", "standstill", lambda p: Incident.objects.all().delete()),
    ("a settled step is open", "progress", "standstill", lambda p: run(p, "stay").update(status="done")),
    # What is settled stays so
    ("a settled step is still held", "fences", "journey", lambda p: run(p, "leave").update(owner="worker")),
    (
        "a settled step will be run again",
        "fences",
        "journey",
        lambda p: run(p, "leave").update(wake_at=NOW + timedelta(hours=1)),
    ),
    (
        "due work has been taken by nobody",
        "outbox",
        "standstill",
        lambda p: item(p, "stranded", 0).update(wake_at=NOW - timedelta(minutes=5)),
    ),
    # Results
    ("a result was altered", "results", "journey", lambda p: run(p, "ride").update(result=4)),
    ("a checksum was altered", "results", "journey", lambda p: run(p, "ride").update(checksum="0" * 64)),
    ("a result has no checksum", "results", "journey", lambda p: run(p, "ride").update(checksum="")),
    ("the result of an element was altered", "results", "journey", lambda p: item(p, "see", 1).update(result=4)),
    # Sub-processes
    (
        "a sub-process names another parent",
        "sub_processes",
        "standstill",
        lambda p: child(p).update(parent=child(p).get().pk),
    ),
    ("a sub-process is run by no step", "sub_processes", "standstill", lambda p: run(p, "called").update(child=None)),
    (
        "a sub-process goes on and nothing waits for it",
        "sub_processes",
        "standstill",
        lambda p: run(p, "called").update(finished_at=NOW),
    ),
    (
        "two steps run one sub-process",
        "sub_processes",
        "standstill",
        lambda p: run(p, "stay").update(child=child(p).get().pk),
    ),
    # Undoing
    ("a finished step was not undone", "undoing", "taken back", lambda p: undo(p, "book").delete()),
    ("a step was undone twice", "undoing", "taken back", lambda p: open_run(p, "book", kind="undo", round=2)),
    (
        "a step was undone that was not done",
        "undoing",
        "taken back",
        lambda p: run(p, "book", kind="step").update(status="skipped"),
    ),
    ("the first step was undone first", "undoing", "taken back", reverse),
    ("a step was undone before its turn", "undoing", "taken back", swap),
    # Operators
    (
        "an operator's effect has no audit row",
        "audit",
        "journey",
        lambda p: point(p, 3).update(cause=f"operator:{uuid7()}"),
    ),
]  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_each_planted_defect_is_found(story: str, subtests: pytest.Subtests) -> None:
    """Plants them one after the other in one process, which is whole again after each."""
    compared = set[str]()
    process = far(STORIES[story])
    for name, rule, its_story, defect in PLANTED:
        if its_story == story:
            with subtests.test(name), undone():
                defect(process)
                found = broken()  # as it is asked after each test
                assert rule in {line.partition(":")[0] for line in found}
                if rule not in compared:
                    compared.add(rule)
                    assert violations() == found


def test_every_planted_defect_has_a_story() -> None:
    assert {story for _, _, story, _ in PLANTED} == set(STORIES)


def test_every_rule_about_workflows_has_a_defect_that_it_finds() -> None:
    elsewhere = {"bulk", "conservation", "references", "untaken"}
    about = {check.__name__ for check in CHECKS} - elsewhere

    assert about == {rule for _, rule, _, _ in PLANTED}


def test_no_stranger_is_found_in_random_graphs() -> None:
    for seed in range(20):
        start_process(RandomGraph, Dice(1000 + seed, 12))
    while drain():
        pass

    assert violations() == []
    assert not OperatorAction.objects.exists()
