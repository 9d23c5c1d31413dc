"""The history of an instance: what arrived, what it changed, what was issued."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Any

from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _

from monitoring.queries.instance.causes import spoken
from orchestrator.engine.operations import OPERATIONS
from orchestrator.models import (
    CauseKind,
    Checkpoint,
    Delivery,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
)

PAGE = 50
"""Transitions on one page of a process manager's history."""

MISSING = object()


@dataclass(frozen=True)
class FieldChange:
    """One field, before and after; MISSING stands for a side where it did not exist."""

    name: str
    before: Any
    after: Any

    @property
    def was_there(self) -> bool:
        return self.before is not MISSING

    @property
    def is_blank(self) -> bool:
        """A field that appeared without a value."""
        return self.before is MISSING and self.after in ("", None)

    @property
    def is_there(self) -> bool:
        return self.after is not MISSING


@dataclass
class Entry:
    """One row. A transition has a revision, and everything in its row was written in one commit."""

    at: datetime
    what: str
    source: str = ""
    kind: str = "transition"
    revision: int | None = None
    changes: list[FieldChange] = field(default_factory=list)
    commands: list[IssuedCommand] = field(default_factory=list)
    event: InboxEvent | None = None
    error: str = ""
    status: str = ""
    began: list[str] = field(default_factory=list)
    resumable: bool = False
    element_of: str = ""
    elements: int = 1


@dataclass(frozen=True)
class HistoryPage:
    """Entries newest first, and the revision below which the next page starts."""

    entries: list[Entry]
    older: int | None = None


@dataclass(frozen=True)
class Checkpoints:
    """Checkpoints newest first, and the next older one if there is one; `newest` when none are newer."""

    page: list[Checkpoint]
    next: list[Checkpoint]
    newest: bool

    @property
    def revisions(self) -> tuple[int, int]:
        """The lowest and the highest; of an empty page a span that nothing is in."""
        return (self.page[-1].revision, self.page[0].revision) if self.page else (0, -1)

    @property
    def rows(self) -> Iterable[tuple[Checkpoint, Checkpoint | None]]:
        """Each with the one before it."""
        return zip_longest(self.page, [*self.page, *self.next][1:])

    def with_others(
        self, instance: ProcessInstance, entries: list[Entry]
    ) -> HistoryPage:
        """The entries of these and, between them, what did not move the instance."""
        if not self.page:
            return HistoryPage(others(instance, None, None))
        first, last = self.page[0], self.page[-1]
        since = last.at if self.next else None
        entries = entries + others(instance, since, None if self.newest else first.at)
        entries.sort(key=lambda entry: (entry.at, entry.revision or 0), reverse=True)
        return HistoryPage(entries, last.revision if self.next else None)


def history_of(
    instance: ProcessInstance, start: str, before: int | None = None
) -> HistoryPage:
    """One page of a process manager's history: its transitions, and between them what did not move it.

    Args:
        start: the step in which instances of its definition start.
        before: only transitions to revisions below this one.
    """
    page = checkpoints_of(instance.checkpoints.all(), before, PAGE)
    commands = commands_of(instance, page)
    events = events_of(instance, page)
    entries = [
        _transition(checkpoint, _before(previous, start, checkpoint), commands, events)
        for checkpoint, previous in page.rows
    ]
    return page.with_others(instance, [*entries, *deliveries(commands)])


def checkpoints_of(
    rows: QuerySet[Checkpoint], before: int | None, size: int
) -> Checkpoints:
    """A page of an instance's checkpoints, of revisions below `before`."""
    rows = rows.order_by("-revision")
    if before is not None:
        rows = rows.filter(revision__lt=before)
    found = list(rows[: size + 1])
    return Checkpoints(found[:size], found[size:], before is None)


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[FieldChange]:
    """The fields that differ between two states of the data, in the order of the newer one."""
    names = [*after, *(name for name in before if name not in after)]
    changes = (
        FieldChange(name, before.get(name, MISSING), after.get(name, MISSING))
        for name in names
    )
    return [
        change
        for change in changes
        if change.before != change.after and not change.is_blank
    ]


def _before(
    earlier: Checkpoint | None, start: str, checkpoint: Checkpoint
) -> dict[str, Any]:
    """Step and data before a transition; the status too where only that has changed."""
    if earlier is None:
        return {"step": start}
    status = _status_of(earlier) if _keeps_its_step(checkpoint) else {}
    return {"step": _step(earlier), **status, **earlier.data}


def _keeps_its_step(checkpoint: Checkpoint) -> bool:
    return checkpoint.moved_by.kind not in (CauseKind.EVENT, CauseKind.DEADLINE)


def _status_of(checkpoint: Checkpoint) -> dict[str, str]:
    return {"status": checkpoint.status}


def _transition(
    checkpoint: Checkpoint,
    before: Mapping[str, Any],
    commands: Mapping[int, list[IssuedCommand]],
    events: Mapping[int, InboxEvent],
) -> Entry:
    event = events.get(checkpoint.revision)
    return Entry(
        checkpoint.at,
        event.type if event else spoken(checkpoint),
        source=event.source if event else "",
        revision=checkpoint.revision,
        changes=differences(
            before,
            {
                "step": _step(checkpoint),
                **(_status_of(checkpoint) if "status" in before else {}),
                **checkpoint.data,
            },
        ),
        commands=commands.get(checkpoint.revision, []),
        event=event,
        status=checkpoint.status,
    )


def _step(checkpoint: Checkpoint) -> str:
    steps = checkpoint.steps
    names: Iterable[Any] = (
        steps if isinstance(steps, list | dict) else [steps] if steps else []
    )
    return ", ".join(str(name) for name in names)


def commands_of(
    instance: ProcessInstance, page: Checkpoints
) -> dict[int, list[IssuedCommand]]:
    """The commands of a page's transitions, by revision."""
    found: dict[int, list[IssuedCommand]] = defaultdict(list)
    rows = instance.commands.filter(revision__range=page.revisions)
    rows = rows.exclude(delivery=Delivery.REACTION)
    for command in rows.order_by("revision", "issued_at", "pk"):
        found[command.revision].append(command)
    return found


def events_of(instance: ProcessInstance, page: Checkpoints) -> dict[int, InboxEvent]:
    """The events that caused a page's transitions, by revision."""
    rows = instance.events.filter(revision__range=page.revisions)
    caused = {checkpoint.cause for checkpoint in page.page}
    return {
        event.revision: event
        for event in rows
        if event.revision is not None and f"event:{event.pk}" in caused
    }


def deliveries(commands: Mapping[int, list[IssuedCommand]]) -> list[Entry]:
    """What came back from commands that were carried out after their commit."""
    return [
        Entry(
            command.finished_at,
            command.answer or (_("No answer") if command.error else _("Carried out")),
            source=_("attempt %(number)d") % {"number": command.attempt},
            kind="delivery",
            commands=[command],
            error=command.error,
        )
        for issued in commands.values()
        for command in issued
        if command.delivery == Delivery.AFTER_COMMIT and command.finished_at is not None
    ]


def others(
    instance: ProcessInstance, since: datetime | None, until: datetime | None
) -> list[Entry]:
    """Events that did not move the instance, and what operators did, in a span of time."""
    events = instance.events.exclude(verdict__in=["started", "moved"]).filter(
        ~Q(verdict="received") | ~Q(error="")
    )
    actions = OperatorAction.objects.filter(
        Q(instance=instance) | Q(event__process=instance.pk)
    )
    if since is not None:
        events, actions = (
            events.filter(received_at__gte=since),
            actions.filter(at__gte=since),
        )
    if until is not None:
        events, actions = (
            events.filter(received_at__lt=until),
            actions.filter(at__lt=until),
        )
    return [
        *map(_event_entry, events.order_by(F("id").desc())[:PAGE]),
        *map(_action_entry, actions.order_by("-at")[:PAGE]),
    ]


def _event_entry(event: InboxEvent) -> Entry:
    return Entry(
        event.received_at,
        event.type,
        source=event.source,
        kind="event",
        event=event,
        error=event.error,
        status=event.verdict,
    )


def _action_entry(action: OperatorAction) -> Entry:
    operation = OPERATIONS.get(action.action)
    return Entry(
        action.at,
        _("%(action)s by %(actor)s")
        % {
            "action": operation.label if operation else action.action,
            "actor": action.actor_name,
        },
        source=action.reason,
        kind="action",
        error=action.detail if action.result == OperatorAction.Result.REFUSED else "",
        status="refused" if action.result == OperatorAction.Result.REFUSED else "done",
    )
