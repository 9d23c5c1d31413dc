"""Invariants of events, commands, audit rows and claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from orchestrator.engine.invariants.stored_sets import (
    REPAIRS,
    WHOLE,
    StoredPart,
    pages_by_key,
)
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.storage.switches import MIGRATE
from orchestrator.models import (
    Cause,
    CauseKind,
    Checkpoint,
    CommandStatus,
    Delivery,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
    Verdict,
)

SETTLED = (Verdict.STARTED, Verdict.MOVED)
OVER = (*SETTLED, Verdict.REACTED, Verdict.IGNORED, Verdict.DISCARDED)
"""The verdicts of events that need no person."""
WORK: tuple[tuple[str, Any, str], ...] = (
    ("event", InboxEvent.objects, "process"),
    ("command", IssuedCommand.objects, "instance"),
    ("step run", StepRun.objects, "instance"),
)
"""The tables of work that workers claim, each with its column with the process."""
LATE = timedelta(seconds=60)
"""Due work that no worker claims for this long is stuck."""
AT_ONCE = 500
"""Keys in one query."""


def conservation(part: StoredPart = WHOLE) -> Iterator[str]:
    """I1: every event has one verdict, and each event that moved a process names the revision."""
    events = part.of(InboxEvent.objects.all(), "process")
    settled = events.filter(verdict__in=SETTLED)
    for event in settled.filter(Q(revision=None) | Q(process_id=None))[:20]:
        yield f"event {event.pk} is {event.verdict} but names no revision"
    for event in events.filter(verdict__in=OVER, handled_at=None)[:20]:
        yield f"event {event.pk} is {event.verdict} but does not say since when"
    waiting = events.filter(verdict=Verdict.RECEIVED, wake_at=None)
    waiting = waiting.filter(remaining=None)  # without events of paused processes
    for event in waiting[:20]:
        yield f"event {event.pk} was received and nothing will look at it"
    doubled = (
        settled.values("process_id", "revision").annotate(n=Count("id")).filter(n__gt=1)
    )
    for row in doubled[:20]:
        yield f"revision {row['revision']} of {row['process_id']} was caused by {row['n']} events"
    for event in settled.exclude(Exists(_checkpoint_of_event()))[:20]:
        yield f"event {event.pk} is {event.verdict} but has no checkpoint"
    yield from _kept(part)


def _kept(part: StoredPart) -> Iterator[str]:
    """No event is unrouted while its process lives, and each process counts its parked events."""
    live = ProcessInstance.objects.live()
    by_id = live.filter(pk=OuterRef("process_id"))
    by_key = live.filter(
        name=OuterRef("target"), correlation_key=OuterRef("correlation_key")
    ).exclude(correlation_key="")
    unrouted = part.of(InboxEvent.objects.all(), "process")
    unrouted = unrouted.filter(verdict=Verdict.UNROUTED)
    known = Exists(by_id) | Q(Exists(by_key), process=None)
    for event in unrouted.filter(known)[:20]:
        yield f"event {event.pk} is unrouted, but its process lives"
    yield from miscounted_parked(part.processes().live())


def miscounted_parked(live: QuerySet[ProcessInstance]) -> Iterator[str]:
    """Yield the live processes whose count of parked events is wrong."""
    parked = InboxEvent.objects.filter(verdict=Verdict.PARKED)
    mine = parked.filter(process=OuterRef("pk")).order_by().values("process")
    number = Subquery(mine.annotate(n=Count("pk")).values("n"))
    counted = live.annotate(found=Coalesce(number, 0))
    for instance in counted.exclude(parked=F("found"))[:20]:
        yield f"{instance.pk} counts {instance.parked} parked events, but has {instance.found}"


def _checkpoint_of_event() -> Any:
    return Checkpoint.objects.filter(
        instance_id=OuterRef("process_id"), revision=OuterRef("revision")
    )


def fences(part: StoredPart = WHOLE) -> Iterator[str]:
    """I6: no worker holds settled work, and none will take it again."""
    for noun, work, process in WORK:
        held = part.of(work.exclude(owner=""), process)
        for row in held.filter(wake_at=None)[:20]:
            yield f"{noun} {row.pk} is settled but still held by {row.owner}"
    settled = {
        "event": Q(verdict__in=OVER),
        "command": Q(status__in=IssuedCommand.SETTLED),
        "step run": Q(finished_at__isnull=False),
    }
    for noun, work, process in WORK:
        due = part.of(work.filter(wake_at__isnull=False), process)
        for row in due.filter(settled[noun])[:20]:
            yield f"{noun} {row.pk} is settled but will be run again"


def outbox(part: StoredPart = WHOLE) -> Iterator[str]:
    """I7: no work has been due for longer than LATE, and every command belongs to a transition."""
    yield from overdue_work(part)
    yield from unsettled_commands(part)


def overdue_work(part: StoredPart = WHOLE) -> Iterator[str]:
    """Yield the work that has been due for too long: the part of I7 that depends on the time."""
    late = database_now() - LATE
    for noun, work, process in WORK:
        for row in part.of(work.filter(wake_at__lt=late), process)[:20]:
            yield f"{noun} {row.pk} has been due since {row.wake_at}"


def unsettled_commands(part: StoredPart = WHOLE) -> Iterator[str]:
    """Yield commands that nothing will carry out, or that belong to no transition: the other part of I7."""
    commands = part.of(IssuedCommand.objects.all())
    # Commands of a paused process wait: it was imported, and no operator has resumed it.
    unsent = commands.filter(wake_at=None, instance__paused_at=None)
    unsent = unsent.exclude(
        status__in=[*IssuedCommand.SETTLED, CommandStatus.FAILED, CommandStatus.HELD]
    )
    for command in unsent[:20]:
        yield f"command {command.pk} is {command.status} and nothing will carry it out"
    yield from _out_of_turn(commands)
    yield from _not_carried_out(commands)
    yield from _lost_follow_ups(commands)
    issued = commands.exclude(delivery=Delivery.REACTION)
    checkpoint = Checkpoint.objects.filter(
        instance_id=OuterRef("instance_id"), revision=OuterRef("revision")
    )
    for command in issued.exclude(Exists(checkpoint))[:20]:
        yield f"command {command.pk} belongs to no transition"


def _out_of_turn(commands: QuerySet[IssuedCommand]) -> Iterator[str]:
    """A command is held exactly until the command before it has settled."""
    holders = commands.filter(holds__isnull=False)
    unsettled = holders.exclude(status__in=IssuedCommand.SETTLED)
    # Read first, since few are unsettled: no index finds a command by the one that it holds.
    waited_for = set[Any](unsettled.values_list("holds", flat=True))
    held = commands.filter(status=CommandStatus.HELD).values_list("pk", flat=True)
    for pk in islice((pk for pk in held if pk not in waited_for), 20):
        yield f"command {pk} is held, but nothing holds it"
    others = commands.exclude(status=CommandStatus.HELD)
    for command in others.filter(pk__in=waited_for)[:20]:
        yield f"command {command.pk} is {command.status} before the one that holds it has settled"


def _not_carried_out(commands: QuerySet[IssuedCommand]) -> Iterator[str]:
    """A worker has carried out each done command, and an operator has skipped each skipped command."""
    later = commands.exclude(delivery=Delivery.IN_TRANSACTION)
    done = later.filter(status=CommandStatus.DONE)
    for command in done.filter(Q(attempt=0) | Q(finished_at=None))[:20]:
        yield f"command {command.pk} is done, but was never carried out"
    given_up = OperatorAction.objects.filter(
        instance=OuterRef("instance"),
        action__in=["skip_command", *REPAIRS],
        result="done",
    )
    skipped = commands.filter(status=CommandStatus.SKIPPED)
    for command in skipped.exclude(Exists(given_up))[:20]:
        yield f"command {command.pk} is skipped, but was never given up"


def _lost_follow_ups(commands: QuerySet[IssuedCommand]) -> Iterator[str]:
    """The inbox has every event that a command's handler returned, for one target or several."""
    told = commands.exclude(follow_ups=None).only("follow_ups")
    for page in pages_by_key(told, AT_ONCE):
        # By their ids, which have an index, and one more of each command than it is said to have caused.
        ids = [f"{one.pk}:{n}" for one in page for n in range(one.follow_ups + 1)]
        found = Counter[UUID | None]()
        for first in range(0, len(ids), AT_ONCE):
            some = ids[first : first + AT_ONCE]
            there = InboxEvent.objects.filter(source="command", event_id__in=some)
            causes = there.values_list("caused_by_id", "event_id").distinct()
            found.update(cause for cause, _ in causes)
        for command in page:
            number = found[command.pk]
            if number != command.follow_ups:
                yield (
                    f"command {command.pk} caused {command.follow_ups} events, but {number} are in the inbox"
                )


def audit(part: StoredPart = WHOLE) -> Iterator[str]:
    """I8: every transition by an operator has its audit row."""
    moved = part.of(Checkpoint.objects.all())
    moved = moved.filter(cause__startswith=f"{CauseKind.OPERATOR}:")
    done = OperatorAction.objects.filter(result="done")
    rows = moved.only("instance_id", "revision", "cause")
    for page in pages_by_key(rows, AT_ONCE):
        told = {checkpoint.pk: Cause.parse(checkpoint.cause).ref for checkpoint in page}
        found = done.filter(key__in=[ref for ref in told.values() if _is_key(ref)])
        keys = {str(key) for key in found.values_list("key", flat=True)}
        for checkpoint in page:
            if told[checkpoint.pk] not in keys:
                yield f"checkpoint {checkpoint.revision} of {checkpoint.instance_id} has no audit row"


def _is_key(ref: str) -> bool:
    try:
        return str(UUID(ref)) == ref
    except ValueError:
        return False


def references(part: StoredPart = WHOLE) -> Iterator[str]:
    """I10: no event names a process or a command that is missing, no visit or incident the definition of others."""
    processes = ProcessInstance.objects.filter(pk=OuterRef("process_id"))
    events = part.of(InboxEvent.objects.all(), "process")
    dangling = events.filter(
        verdict__in=[*SETTLED, Verdict.PARKED], process_id__isnull=False
    ).exclude(Exists(processes))
    for event in dangling[:20]:
        yield f"event {event.pk} belongs to {event.process_id}, which is not there"
    causes = IssuedCommand.objects.filter(pk=OuterRef("caused_by_id"))
    orphans = events.filter(caused_by_id__isnull=False).exclude(Exists(causes))
    for event in orphans[:20]:
        yield f"event {event.pk} was caused by command {event.caused_by_id}, which is not there"
    mine = OperatorAction.objects.filter(instance=OuterRef("instance"))
    # An earlier release migrates a process without its visits.
    migrated = Exists(mine.filter(action=MIGRATE))
    for noun, model in (("step run", StepRun), ("incident", Incident)):
        rows = part.of(model.objects.filter(stored_definition__isnull=False))
        others = rows.exclude(stored_definition=F("instance__definition"))
        for row in others.filter(~migrated)[:20]:
            yield f"{noun} {row.pk} has the stored definition {row.stored_definition_id}, and its process another"
