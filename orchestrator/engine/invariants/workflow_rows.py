"""What must hold of the step runs of workflows by themselves: maps, results, sub-processes, undoing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from orchestrator.definition.codec import digest
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.results import GIVEN
from orchestrator.models import (
    Blocked,
    Definition,
    InboxEvent,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
    Verdict,
)


def maps() -> Iterator[str]:
    """I5: each element of a map is done, has failed, or is open; when none is open the map is over."""
    heads = StepRun.objects.filter(kind=StepKind.MAP, redo=False)
    heads = heads.exclude(status=StepStatus.SUPERSEDED).order_by("pk")
    for instance in _with_maps().iterator(500):
        counted = _items(instance)
        for head in heads.filter(instance=instance):
            finding = _map(head, counted[head.node, head.visit])
            if finding:
                yield f"the map {head.node} of {instance.pk} {finding}"


def _with_maps() -> Any:
    heads = StepRun.objects.filter(instance=OuterRef("pk"), kind=StepKind.MAP)
    return ProcessInstance.objects.filter(
        Exists(heads), definition__kind=Definition.Kind.WORKFLOW
    ).order_by("pk")


def _items(instance: ProcessInstance) -> dict[tuple[str, int], Counter[str]]:
    """How many elements of each map stand how."""
    found: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    items = instance.step_runs.filter(kind=StepKind.ITEM, redo=False)
    items = items.exclude(status=StepStatus.SUPERSEDED)
    rows = items.values_list("node", "visit", "status", "finished_at")
    for node, visit, status, finished_at in rows:
        found[node, visit][status if finished_at else "open"] += 1
    return found


def _map(head: StepRun, items: Counter[str]) -> str:
    """What is wrong with the numbers of a map; "" when nothing is."""
    expected = head.expected or 0
    if items.total() != expected:
        return f"has {items.total()} elements instead of {expected}"
    done = items[StepStatus.DONE] + items[StepStatus.SKIPPED]
    failed = items[StepStatus.FAILED]
    shown = head.progress or {"done": 0, "failed": 0}
    over = head.finished_at is not None
    if not over or head.status == StepStatus.DONE:
        if (shown["done"], shown["failed"]) != (done, failed):
            return f"shows {shown['done']} done and {shown['failed']} failed, but has {done} and {failed}"
        if (done + failed == expected) != over:
            return "is over too early" if over else "is not over"
    if over and items["open"]:
        return f"is over, but {items['open']} of its elements are open"
    return ""


def results() -> Iterator[str]:
    """I3: every stored result is what was stored, unless it was found out and is redone."""
    later = StepRun.objects.filter(
        instance=OuterRef("instance"),
        node=OuterRef("node"),
        visit=OuterRef("visit"),
        round__gt=OuterRef("round"),
        redo=True,
    )
    same = Q(item=OuterRef("item")) | Q(item=None, kind=OuterRef("kind"))
    rows = StepRun.objects.exclude(kind__in=["", StepKind.MAP, StepKind.JOIN])
    rows = rows.filter(Q(status__in=GIVEN) | ~Q(checksum=""))
    fields = ("pk", "node", "instance_id", "result", "checksum")
    bad = [
        row[:3]
        for row in rows.values_list(*fields).iterator(500)
        if digest(row[3]) != row[4]
    ]
    for pk, node, instance in bad[:20]:
        redone = StepRun.objects.filter(pk=pk).filter(Exists(later.filter(same)))
        if not redone.exists():
            yield f"the result of {node} of {instance} does not match its checksum"


def sub_processes() -> Iterator[str]:
    """I10: a sub-process and the step that runs it know each other, and none goes on for a step that is over."""
    linked = StepRun.objects.filter(child__isnull=False)
    strangers = linked.exclude(child__parent=F("instance"))
    for run in strangers[:20]:
        yield f"{run.node} of {run.instance_id} runs {run.child_id}, whose parent it is not"
    children = ProcessInstance.objects.filter(parent__isnull=False)
    children = children.live().exclude(Exists(_undone_runs(OuterRef("pk"))))
    runs = StepRun.objects.filter(child=OuterRef("pk"), instance=OuterRef("parent"))
    for child in children.exclude(Exists(runs))[:20]:
        yield f"{child.pk} says that {child.parent_id} runs it, but no step does"
    for child in children.exclude(Exists(runs.filter(finished_at=None)))[:20]:
        yield f"{child.pk} goes on, but nothing waits for it any more"
    yield from _untold()
    linked = linked.exclude(status=StepStatus.SUPERSEDED)
    twice = linked.values("child").annotate(n=Count("pk")).filter(n__gt=1)
    for row in twice[:20]:
        yield f"{row['child']} is run by {row['n']} steps"


def _undone_runs(instance: OuterRef) -> QuerySet[StepRun]:
    """The signs that a process is being undone."""
    signs = Q(kind=StepKind.UNDO) | Q(blocked=Blocked.UNDOING)
    return StepRun.objects.filter(signs, instance=instance)


def _untold() -> Iterator[str]:
    """A step stands failed exactly as long as its sub-process does, or will look at it."""
    of_child = {"instance": OuterRef("child"), "finished_at": None}
    steps = StepRun.objects.filter(**of_child, status=StepStatus.FAILED)
    events = InboxEvent.objects.filter(verdict=Verdict.FAILED)
    failed = Exists(steps) | Exists(events.filter(process=OuterRef("child")))
    going_on = Q(child__paused_at=None) & ~Exists(_undone_runs(OuterRef("child")))
    asleep = StepRun.objects.filter(finished_at=None, child__isnull=False)
    asleep = asleep.filter(child__finished_at=None)
    asleep = asleep.filter(wake_at=None, remaining=None)
    waiting = asleep.filter(going_on, status=StepStatus.WAITING)
    for run in waiting.filter(failed)[:20]:
        yield f"{run.child_id} has failed, but {run.node} of {run.instance_id} was not told"
    standing = asleep.filter(going_on, status=StepStatus.FAILED)
    for run in standing.exclude(failed)[:20]:
        yield f"{run.node} of {run.instance_id} stands failed, but {run.child_id} goes on"


def undoing() -> Iterator[str]:
    """I9: of a process that is undone, every finished step that can be is undone once, the last one first."""
    undos = StepRun.objects.filter(instance=OuterRef("pk"), kind=StepKind.UNDO)
    taken_back = ProcessInstance.objects.filter(Exists(undos))
    for instance in taken_back.order_by("pk").iterator(500):
        try:
            plan = definitions.plan_of(instance)
        except Exception:  # noqa: BLE001, S112  # the running code has none for it: `model` says so
            continue
        if plan.undoable:
            yield from _undone(instance, plan.undoable)


def _undone(instance: ProcessInstance, undoable: frozenset[str]) -> Iterator[str]:
    done = instance.step_runs.filter(node__in=undoable, status=StepStatus.DONE)
    done = done.exclude(kind__in=[StepKind.UNDO, StepKind.MAP]).order_by("round")
    last = {_key(run): run for run in done.defer("result", "element", "saved")}
    expected = sorted(last.values(), key=lambda run: (run.left or 0, run.pk))[::-1]
    undos = list(
        instance.step_runs.filter(kind=StepKind.UNDO)
        .order_by("pk")
        .defer("result", "element", "saved")
    )
    found, wanted = [_key(run) for run in undos], [_key(run) for run in expected]
    for key, count in Counter(found).items():
        if count > 1:
            yield f"{key[0]} of {instance.pk} is undone {count} times"
    if sorted(set(found), key=str) != sorted(wanted, key=str):
        missing = [key[0] for key in wanted if key not in found]
        yield f"{instance.pk} is undone, but not exactly what was done: {missing or found} "
    elif found != wanted and len({run.entered for run in undos}) == 1:
        # One that still ran when the others were lined up is undone when it has come to its end, after them.
        yield f"{instance.pk} is undone, but not the last step first"
    if finding := _out_of_turn(undos):
        yield f"{finding} of {instance.pk} was undone before what was done after it"


def _key(run: StepRun) -> tuple[str, int, int | None]:
    return (run.node, run.visit, run.item)


def _out_of_turn(undos: list[StepRun]) -> str:
    """A step that was undone before one that had to be undone first; "" if there is none."""
    before = 0
    for run in undos:
        if run.left is None:
            before = -1  # nothing after it may be settled
        elif before < 0 or run.left < before:
            return run.node
        else:
            before = run.left
    return ""
