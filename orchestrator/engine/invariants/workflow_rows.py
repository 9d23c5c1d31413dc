"""Invariants of the step runs of workflows: maps, results, sub-processes and compensation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from orchestrator.containers import group_by_key
from orchestrator.definition.codec import digest
from orchestrator.engine.invariants.stored_sets import (
    WHOLE,
    ProcessSet,
    StoredPart,
    pages_by_key,
)
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.results import GIVEN
from orchestrator.models import (
    Blocked,
    InboxEvent,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
    Verdict,
)

AT_ONCE = 500
"""Results in one query."""


def maps(some: ProcessSet) -> Iterator[str]:
    """I5: a map counts its done and failed elements, and has ended when no element is open."""
    rows = some.of(StepRun.objects.filter(redo=False))
    rows = rows.exclude(status=StepStatus.SUPERSEDED)
    heads = list(rows.filter(kind=StepKind.MAP).order_by("pk").only(*HEAD))
    if not heads:
        return
    counted = _items(rows.filter(kind=StepKind.ITEM))
    for head in heads:
        finding = _map(head, counted[head.instance_id, head.node, head.visit])
        if finding:
            yield f"the map {head.node} of {head.instance_id} {finding}"


HEAD = ("instance_id", "node", "visit", "expected", "progress", "status", "finished_at")


def _items(rows: QuerySet[StepRun]) -> dict[tuple[UUID, str, int], Counter[str]]:
    """The numbers of each map's elements by their statuses; open ones together."""
    found: dict[tuple[UUID, str, int], Counter[str]] = defaultdict(Counter)
    is_open = Q(finished_at=None)
    counted = rows.values("instance_id", "node", "visit", "status", open=is_open)
    for row in counted.annotate(n=Count("pk")).order_by():
        status = "open" if row["open"] else row["status"]
        found[row["instance_id"], row["node"], row["visit"]][status] += row["n"]
    return found


def _map(head: StepRun, items: Counter[str]) -> str:
    """Return what is wrong with the numbers of a map, or ""."""
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


def results(part: StoredPart = WHOLE) -> Iterator[str]:
    """I3: every stored result matches its checksum, unless the engine has found the mismatch and redoes the step."""
    later = StepRun.objects.filter(
        instance=OuterRef("instance"),
        node=OuterRef("node"),
        visit=OuterRef("visit"),
        round__gt=OuterRef("round"),
        redo=True,
    )
    same = Q(item=OuterRef("item")) | Q(item=None, kind=OuterRef("kind"))
    rows = part.of(StepRun.objects.all())
    rows = rows.exclude(kind__in=["", StepKind.MAP, StepKind.JOIN])
    rows = rows.filter(Q(status__in=GIVEN) | ~Q(checksum=""))
    fields = ("pk", "node", "instance_id", "result", "checksum")
    read = pages_by_key(rows.values_list(*fields, named=True), AT_ONCE)
    bad = (row for page in read for row in page if digest(row.result) != row.checksum)
    for row in islice(bad, 20):
        redone = StepRun.objects.filter(pk=row.pk).filter(Exists(later.filter(same)))
        if not redone.exists():
            yield f"the result of {row.node} of {row.instance_id} does not match its checksum"


def sub_processes(part: StoredPart = WHOLE) -> Iterator[str]:
    """I10: a sub-process and its step name each other, and no sub-process goes on after the end of its step."""
    linked = part.of(StepRun.objects.filter(child__isnull=False))
    strangers = linked.exclude(child__parent=F("instance"))
    for run in strangers[:20]:
        yield f"{run.node} of {run.instance_id} runs {run.child_id}, whose parent it is not"
    children = part.processes().filter(parent__isnull=False)
    children = children.live().exclude(Exists(_undone_runs(OuterRef("pk"))))
    runs = StepRun.objects.filter(child=OuterRef("pk"), instance=OuterRef("parent"))
    for child in children.exclude(Exists(runs))[:20]:
        yield f"{child.pk} says that {child.parent_id} runs it, but no step does"
    for child in children.exclude(Exists(runs.filter(finished_at=None)))[:20]:
        yield f"{child.pk} goes on, but nothing waits for it any more"
    yield from _untold(part)
    # The steps may belong to processes of several parts, so each part counts those of its sub-processes.
    linked = part.of(StepRun.objects.filter(child__isnull=False), "child")
    linked = linked.exclude(status=StepStatus.SUPERSEDED)
    twice = linked.values("child").annotate(n=Count("pk")).filter(n__gt=1)
    for row in twice[:20]:
        yield f"{row['child']} is run by {row['n']} steps"


def _undone_runs(instance: OuterRef) -> QuerySet[StepRun]:
    """The step runs of a compensation."""
    signs = Q(kind=StepKind.UNDO) | Q(blocked=Blocked.UNDOING)
    return StepRun.objects.filter(signs, instance=instance)


def _untold(part: StoredPart) -> Iterator[str]:
    """A step has failed exactly while its sub-process has, unless it is about to check it."""
    of_child = {"instance": OuterRef("child"), "finished_at": None}
    steps = StepRun.objects.filter(**of_child, status=StepStatus.FAILED)
    events = InboxEvent.objects.filter(verdict=Verdict.FAILED)
    failed = Exists(steps) | Exists(events.filter(process=OuterRef("child")))
    going_on = Q(child__paused_at=None) & ~Exists(_undone_runs(OuterRef("child")))
    asleep = part.of(StepRun.objects.filter(finished_at=None))
    asleep = asleep.filter(child__isnull=False)
    asleep = asleep.filter(child__finished_at=None)
    asleep = asleep.filter(wake_at=None, remaining=None)
    waiting = asleep.filter(going_on, status=StepStatus.WAITING)
    for run in waiting.filter(failed)[:20]:
        yield f"{run.child_id} has failed, but {run.node} of {run.instance_id} was not told"
    standing = asleep.filter(going_on, status=StepStatus.FAILED)
    for run in standing.exclude(failed)[:20]:
        yield f"{run.node} of {run.instance_id} stands failed, but {run.child_id} goes on"


def undoing(some: ProcessSet) -> Iterator[str]:
    """I9: a compensation undoes every finished step with an undo function once, the last one first."""
    rows = some.of(StepRun.objects.only(*UNDONE))
    undos = _of_each(rows.filter(kind=StepKind.UNDO).order_by("pk"))
    if not undos:
        return
    done = StepRun.objects.filter(status=StepStatus.DONE, instance__in=list(undos))
    done = done.exclude(kind__in=[StepKind.UNDO, StepKind.MAP]).only(*UNDONE)
    finished = _of_each(done.order_by("round"))
    for instance in some.processes:
        if instance.pk not in undos:
            continue
        try:
            plan = definitions.plan_of(instance)
        except BaseException:  # noqa: BLE001, S112  # the running code has no plan for it: `model` reports it
            continue
        if plan.undoable:
            over = [run for run in finished[instance.pk] if run.node in plan.undoable]
            yield from _undone(instance, over, undos[instance.pk])


UNDONE = ("instance_id", "node", "visit", "item", "left", "entered")


def _of_each(runs: Iterable[StepRun]) -> Mapping[UUID, list[StepRun]]:
    return group_by_key((run.instance_id, run) for run in runs)


def _undone(
    instance: ProcessInstance, done: list[StepRun], undos: list[StepRun]
) -> Iterator[str]:
    last = {_key(run): run for run in done}
    expected = sorted(last.values(), key=lambda run: (run.left or 0, run.pk))[::-1]
    found, wanted = [_key(run) for run in undos], [_key(run) for run in expected]
    for key, count in Counter(found).items():
        if count > 1:
            yield f"{key[0]} of {instance.pk} is undone {count} times"
    if sorted(set(found), key=str) != sorted(wanted, key=str):
        missing = [key[0] for key in wanted if key not in found]
        yield f"{instance.pk} is undone, but not exactly what was done: {missing or found} "
    elif found != wanted and len({run.entered for run in undos}) == 1:
        # A step that still ran when the compensation began is undone after the others.
        yield f"{instance.pk} is undone, but not the last step first"
    if finding := _out_of_turn(undos):
        yield f"{finding} of {instance.pk} was undone before what was done after it"


def _key(run: StepRun) -> tuple[str, int, int | None]:
    return (run.node, run.visit, run.item)


def _out_of_turn(undos: list[StepRun]) -> str:
    """Return a step that was undone too early, or ""."""
    before = 0
    for run in undos:
        if run.left is None:
            before = -1  # no later undo may be settled
        elif before < 0 or run.left < before:
            return run.node
        else:
            before = run.left
    return ""
