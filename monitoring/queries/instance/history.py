"""The history of a process manager's instance, and what the history of either kind is read with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from monitoring.diagrams import words
from monitoring.masking import names_of
from monitoring.queries.graphs import known_graph
from monitoring.queries.instance.entries import (
    Entry,
    FieldChange,
    HistoryPage,
    Issued,
    differences,
    status_change,
)
from monitoring.queries.instance.event_keys import EventKeys
from monitoring.queries.instance.leading import leading_from
from monitoring.queries.instance.overtaking import overtaken
from monitoring.queries.instance.versions import versions_of
from orchestrator.collecting import gathered
from orchestrator.definition.graph import Edge
from orchestrator.engine.operations import OPERATIONS
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
    as_written,
)

PAGE = 50
"""Transitions on one page of a process manager's history."""

LOOKED_AT = 1_000
"""Events between the transitions of one page that are looked at, the newest of them."""


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
    def times(self) -> tuple[datetime, datetime]:
        """The earliest and the latest moment of a page that has some; the clock may have been put back meanwhile."""
        times = [checkpoint.at for checkpoint in self.page]
        return min(times), max(times)

    @property
    def rows(self) -> Iterable[tuple[Checkpoint, Checkpoint | None]]:
        """Each with the one before it."""
        return zip_longest(self.page, [*self.page, *self.next][1:])

    def with_others(
        self,
        instance: ProcessInstance,
        entries: list[Entry],
        moved: Collection[InboxEvent] | None = None,
        visits: Sequence[StepRun] | None = None,
    ) -> HistoryPage:
        """The entries of these and, between them, what did not move the instance.

        Args:
            instance: the process.
            entries: those of the transitions.
            moved: all events that have moved it; None if they are not known.
            visits: all its visits; None if they are not known.
        """
        first, last = (self.page[0], self.page[-1]) if self.page else (None, None)
        since = last.at if last and self.next else None
        until = first.at if first and not self.newest else None
        keys = EventKeys.of_span(since, until)
        unmoved, cut = unmoving(instance, keys, since, until)
        entries = [*entries, *unmoved]
        events = [entry.event for entry in entries if entry.event is not None]
        entries += actions(instance, events, since, until)
        entries.sort(key=lambda entry: (entry.at, entry.revision or 0), reverse=True)
        ahead = overtaken(instance, events, keys.below, moved)
        commits = {checkpoint.cause: checkpoint.revision for checkpoint in self.page}
        leading = leading_from(instance, self.page, visits)
        for entry in entries:
            entry.commit = entry.revision or commits.get(entry.cause)
            entry.leads_to = leading.get(entry.revision or 0)
            entry.overtaken_by = ahead.get(entry.event.pk) if entry.event else None
        older = last.revision if last and self.next else None
        return HistoryPage(entries, older, len(self.page), cut)


def history_of(
    instance: ProcessInstance,
    start: str,
    labels: Mapping[str, str],
    before: int | None = None,
    visits: Sequence[StepRun] | None = None,
) -> HistoryPage:
    """One page of a process manager's history: its transitions, and between them what did not move it.

    Args:
        start: the step in which instances of its definition start.
        labels: its steps as people read them.
        before: only transitions to revisions below this one.
        visits: all its visits; None if they are not known.
    """
    page = checkpoints_of(instance.checkpoints.all(), before, PAGE)
    versions = versions_of(instance)
    labels, start = versions.labels(labels), versions.start(start)
    commands, deadlines = (
        commands_of(instance, page),
        known_graph(instance.definition).deadlines,
    )
    events, hidden = events_of(instance, page), names_of(instance.definition)
    entries = [
        _transition(
            checkpoint,
            _before(previous, start, checkpoint),
            labels,
            commands,
            events.get(checkpoint.revision),
            deadlines.get(checkpoint.edge),
            hidden,
        )
        for checkpoint, previous in page.rows
    ]
    versions.noted(entries)
    # None where there are other checkpoints.
    moved = events.values() if page.newest and not page.next else None
    return page.with_others(instance, [*entries, *deliveries(commands)], moved, visits)


def checkpoints_of(
    rows: QuerySet[Checkpoint], before: int | None, size: int
) -> Checkpoints:
    """A page of an instance's checkpoints, of revisions below `before`."""
    rows = rows.order_by("-revision")
    if before is not None:
        rows = rows.filter(revision__lt=before)
    found = list(rows[: size + 1])
    return Checkpoints(found[:size], found[size:], before is None)


class Before(NamedTuple):
    """How a process stood before a transition; the status only where nothing else has changed."""

    step: str
    status: str = ""
    data: Mapping[str, Any] = {}


def _before(earlier: Checkpoint | None, start: str, checkpoint: Checkpoint) -> Before:
    if earlier is None:
        return Before(start)
    status = earlier.status if _keeps_its_step(checkpoint) else ""
    return Before(_step(earlier), status, earlier.data)


def _keeps_its_step(checkpoint: Checkpoint) -> bool:
    cause = checkpoint.moved_by
    moves = (CauseKind.EVENT, CauseKind.DEADLINE)
    return cause is None or cause.kind not in moves


def _transition(
    checkpoint: Checkpoint,
    before: Before,
    labels: Mapping[str, str],
    commands: Mapping[int, list[Issued]],
    event: InboxEvent | None,
    deadline: Edge | None,
    hidden: frozenset[str],
) -> Entry:
    beside = event.source if event else _said_by(deadline) if deadline else ""
    return Entry(
        checkpoint.at,
        event.type if event else checkpoint.said,
        source=beside,
        revision=checkpoint.revision,
        changes=[
            *_step_change(before.step, _step(checkpoint), labels),
            *(status_change(before.status, checkpoint.status) if before.status else []),
            *differences(before.data, checkpoint.data, hidden),
        ],
        commands=commands.get(checkpoint.revision, []),
        event=event,
        status=checkpoint.status,
    )


def _said_by(deadline: Edge) -> str:
    """What the row of a deadline says beside its commands and the step that it leads to."""
    said = [_("escalated")] if deadline.escalates else []
    said += [words.assign(deadline.owner)] if deadline.owner else []
    said += [words.notify(deadline.notifies)] if deadline.notifies else []
    return ", ".join(said)


def _step_change(
    before: str, after: str, labels: Mapping[str, str]
) -> list[FieldChange]:
    if before == after:
        return []
    was, now = (labels.get(step, step) for step in (before, after))
    return [FieldChange(_("step"), was, now)]


def _step(checkpoint: Checkpoint) -> str:
    steps = checkpoint.steps
    names: Iterable[Any] = (
        steps if isinstance(steps, list | dict) else [steps] if steps else []
    )
    return ", ".join(str(name) for name in names)


def commands_of(
    instance: ProcessInstance, page: Checkpoints
) -> dict[int, list[Issued]]:
    """The commands of a page's transitions, by revision."""
    rows = instance.commands.filter(revision__range=page.revisions)
    rows = rows.exclude(delivery=Delivery.REACTION)
    found = gathered((one.revision, Issued(one)) for one in as_written(rows))
    for issued in found.values():
        holders = {one.command.holds: one for one in issued}
        for one in issued:
            holder = holders.get(one.command.pk)
            if holder is not None:
                one.held_by = holder.held_by if holder.is_held else holder.command
    return found


def events_of(instance: ProcessInstance, page: Checkpoints) -> dict[int, InboxEvent]:
    """The events that caused a page's transitions, by revision."""
    causes = (checkpoint.moved_by for checkpoint in page.page)
    keys = [int(one.ref) for one in causes if one and one.kind == CauseKind.EVENT]
    first, last = page.revisions
    return {
        event.revision: event
        for event in instance.events.filter(pk__in=keys)
        if event.revision is not None and first <= event.revision <= last
    }


def deliveries(commands: Mapping[int, list[Issued]]) -> list[Entry]:
    """What came back from commands that were carried out after their commit."""
    return [
        Entry(
            command.finished_at,
            command.answer or _what_became_of(command),
            source=_("attempt %(number)d") % {"number": command.attempt},
            kind="delivery",
            commands=[one],
            error=command.said,
        )
        for issued in commands.values()
        for one in issued
        for command in [one.command]
        if command.delivery == Delivery.AFTER_COMMIT and command.finished_at is not None
    ]


def _what_became_of(command: IssuedCommand) -> str:
    """What is said of a settled command that led to no event: a handler that refused it has answered too."""
    if command.status == CommandStatus.FAILED:
        return _("Not carried out")
    if command.status == CommandStatus.SKIPPED:
        return _("Given up")
    return _("Carried out")


def unmoving(
    instance: ProcessInstance,
    keys: EventKeys,
    since: datetime | None,
    until: datetime | None,
) -> tuple[list[Entry], bool]:
    """The newest events of a span of time that did not move the instance, and whether there may be more.

    Args:
        instance: the process.
        keys: between which the events of the span lie.
        since: its beginning.
        until: its end, which is no part of it.
    """
    has_moved = Q(verdict__in=[Verdict.STARTED, Verdict.MOVED])
    untried = Q(verdict=Verdict.RECEIVED, error="")
    there = keys.among(instance.events.all()).order_by("-pk")
    looked_at = list(
        there.annotate(told=~(has_moved | untried)).values_list(
            "pk", "received_at", "told"
        )[: LOOKED_AT + 1]
    )
    wanted = [
        pk
        for pk, at, told in looked_at[:LOOKED_AT]
        if told and (since is None or at >= since) and (until is None or at < until)
    ]
    rows = InboxEvent.objects.filter(pk__in=wanted[:PAGE]).order_by("-pk")
    cut = len(wanted) > PAGE or len(looked_at) > LOOKED_AT
    return list(map(_event_entry, rows)) if wanted else [], cut


def actions(
    instance: ProcessInstance,
    events: Iterable[InboxEvent],
    since: datetime | None,
    until: datetime | None,
) -> list[Entry]:
    """What operators did in a span of time, and with its events before these had found their process.

    Args:
        instance: the process.
        events: those of the span that are shown.
        since: its beginning.
        until: its end, which is no part of it.
    """
    span = Q()
    if since is not None:
        span &= Q(at__gte=since)
    if until is not None:
        span &= Q(at__lt=until)
    # Each part has an index; both in one condition have none.
    own = OperatorAction.objects.filter(span, instance=instance)
    keys = [event.pk for event in events]
    before = OperatorAction.objects.filter(event__in=keys, instance=None)
    rows = own.union(before)
    return list(map(_action_entry, rows.order_by("-at")[:PAGE]))


def _event_entry(event: InboxEvent) -> Entry:
    return Entry(
        event.received_at,
        event.type,
        source=event.source,
        kind="event",
        event=event,
        error=event.said,
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
        cause=str(Cause.of(CauseKind.OPERATOR, action.key)),
        error=action.said if action.result == OperatorAction.Result.REFUSED else "",
        status="refused" if action.result == OperatorAction.Result.REFUSED else "done",
    )
