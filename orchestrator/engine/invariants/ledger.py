"""What must hold of events, commands, audit rows and of who holds what."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from orchestrator.engine.invariants.reading import REPAIRS, pages
from orchestrator.engine.storage.batch import database_now
from orchestrator.models import (
    Cause,
    CauseKind,
    Checkpoint,
    CommandStatus,
    Delivery,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
    Verdict,
)

SETTLED = (Verdict.STARTED, Verdict.MOVED)
WORK: tuple[tuple[str, Any], ...] = (
    ("event", InboxEvent.objects),
    ("command", IssuedCommand.objects),
    ("step run", StepRun.objects),
)
"""What workers claim."""
LATE = timedelta(seconds=60)
"""Due work that no worker claims for this long is stuck."""
AT_ONCE = 500
"""Keys that one query names."""


def conservation() -> Iterator[str]:
    """I1: every event has one verdict, and those that moved a process name the revision they led to."""
    settled = InboxEvent.objects.filter(verdict__in=SETTLED)
    for event in settled.filter(Q(revision=None) | Q(process_id=None))[:20]:
        yield f"event {event.pk} is {event.verdict} but names no revision"
    waiting = InboxEvent.objects.filter(verdict=Verdict.RECEIVED, wake_at=None)
    waiting = waiting.filter(remaining=None)  # else its process stands still
    for event in waiting[:20]:
        yield f"event {event.pk} was received and nothing will look at it"
    doubled = (
        settled.values("process_id", "revision").annotate(n=Count("id")).filter(n__gt=1)
    )
    for row in doubled[:20]:
        yield f"revision {row['revision']} of {row['process_id']} was caused by {row['n']} events"
    for event in settled.exclude(Exists(_checkpoint_of_event()))[:20]:
        yield f"event {event.pk} is {event.verdict} but has no checkpoint"
    yield from _kept()


def _kept() -> Iterator[str]:
    """No event is unrouted whose process lives, and a process counts what is parked for it."""
    live = ProcessInstance.objects.live()
    by_id = live.filter(pk=OuterRef("process_id"))
    by_key = live.filter(
        name=OuterRef("target"), correlation_key=OuterRef("correlation_key")
    ).exclude(correlation_key="")
    unrouted = InboxEvent.objects.filter(verdict=Verdict.UNROUTED)
    known = Exists(by_id) | Q(Exists(by_key), process=None)
    for event in unrouted.filter(known)[:20]:
        yield f"event {event.pk} is unrouted, but its process lives"
    yield from counted_parked(live)


def counted_parked(live: QuerySet[ProcessInstance]) -> Iterator[str]:
    """Processes that go on count what is parked for them."""
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


def fences() -> Iterator[str]:
    """I6: nothing that is settled is still held by a worker, and nothing that is settled will be run again."""
    for noun, work in WORK:
        for row in work.exclude(owner="").filter(wake_at=None)[:20]:
            yield f"{noun} {row.pk} is settled but still held by {row.owner}"
    over = StepRun.objects.filter(finished_at__isnull=False, wake_at__isnull=False)
    for run in over[:20]:
        yield f"step run {run.pk} is settled but will be run again"


def outbox() -> Iterator[str]:
    """I7: no due command, event or step is older than the bound, and every command belongs to a transition."""
    yield from overdue()
    yield from unsettled()


def overdue() -> Iterator[str]:
    """The first half of I7, which depends on the time."""
    late = database_now() - LATE
    for noun, work in WORK:
        for row in work.filter(wake_at__lt=late)[:20]:
            yield f"{noun} {row.pk} has been due since {row.wake_at}"


def unsettled() -> Iterator[str]:
    """The other half of I7: every command is settled, will be looked at or is held, and belongs to a transition."""
    # Those of a process that was imported and stands still wait for it to be resumed.
    unsent = IssuedCommand.objects.filter(wake_at=None, instance__paused_at=None)
    unsent = unsent.exclude(
        status__in=[
            *IssuedCommand.SETTLED,
            CommandStatus.FAILED,
            CommandStatus.HELD,
        ]
    )
    for command in unsent[:20]:
        yield f"command {command.pk} is {command.status} and nothing will carry it out"
    yield from _out_of_turn()
    yield from _not_carried_out()
    yield from _lost_follow_ups()
    issued = IssuedCommand.objects.exclude(delivery=Delivery.REACTION)
    checkpoint = Checkpoint.objects.filter(
        instance_id=OuterRef("instance_id"), revision=OuterRef("revision")
    )
    for command in issued.exclude(Exists(checkpoint))[:20]:
        yield f"command {command.pk} belongs to no transition"


def _out_of_turn() -> Iterator[str]:
    """A command is held as long as the one before it has not settled, and no longer."""
    holders = IssuedCommand.objects.filter(holds__isnull=False)
    waited_for = holders.exclude(status__in=IssuedCommand.SETTLED).values("holds")
    held = IssuedCommand.objects.filter(status=CommandStatus.HELD)
    for command in held.exclude(pk__in=waited_for)[:20]:
        yield f"command {command.pk} is held, but nothing holds it"
    others = IssuedCommand.objects.exclude(status=CommandStatus.HELD)
    for command in others.filter(pk__in=waited_for)[:20]:
        yield f"command {command.pk} is {command.status} before the one that holds it has settled"


def _not_carried_out() -> Iterator[str]:
    """A command that is done was carried out by a worker, and one that is skipped was given up by a person."""
    later = IssuedCommand.objects.exclude(delivery=Delivery.IN_TRANSACTION)
    done = later.filter(status=CommandStatus.DONE)
    for command in done.filter(Q(attempt=0) | Q(finished_at=None))[:20]:
        yield f"command {command.pk} is done, but nobody has carried it out"
    given_up = OperatorAction.objects.filter(
        instance=OuterRef("instance"),
        action__in=["skip_command", *REPAIRS],
        result="done",
    )
    skipped = IssuedCommand.objects.filter(status=CommandStatus.SKIPPED)
    for command in skipped.exclude(Exists(given_up))[:20]:
        yield f"command {command.pk} is skipped, but nobody has given it up"


def _lost_follow_ups() -> Iterator[str]:
    """Every event that a command's handler returned is in the inbox, for one target or several."""
    told = IssuedCommand.objects.exclude(follow_ups=None)
    counted = told.annotate(found=Count("caused__event_id", distinct=True))
    for command in counted.exclude(follow_ups=F("found"))[:20]:
        yield (
            f"command {command.pk} caused {command.follow_ups} events, but {command.found} are in the inbox"
        )


def audit() -> Iterator[str]:
    """I8: every operator's effect has its audit row, and every audit row of a transition has its effect."""
    moved = Checkpoint.objects.filter(cause__startswith=f"{CauseKind.OPERATOR}:")
    done = OperatorAction.objects.filter(result="done")
    rows = moved.only("instance_id", "revision", "cause")
    for page in pages(rows, AT_ONCE):
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


def references() -> Iterator[str]:
    """I10: no event, command or incident points at a process that is gone."""
    processes = ProcessInstance.objects.filter(pk=OuterRef("process_id"))
    dangling = InboxEvent.objects.filter(
        verdict__in=[*SETTLED, Verdict.PARKED], process_id__isnull=False
    ).exclude(Exists(processes))
    for event in dangling[:20]:
        yield f"event {event.pk} belongs to {event.process_id}, which is not there"
    causes = IssuedCommand.objects.filter(pk=OuterRef("caused_by_id"))
    orphans = InboxEvent.objects.filter(caused_by_id__isnull=False).exclude(
        Exists(causes)
    )
    for event in orphans[:20]:
        yield f"event {event.pk} was caused by command {event.caused_by_id}, which is not there"
