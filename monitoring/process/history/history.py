"""The history of a process: its transitions, and the other events and actions between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from monitoring.base.differences import FieldChange, differences
from monitoring.base.graphs import first_step, known_graph, stored_graph
from monitoring.base.masking import names_of
from monitoring.diagrams import words
from monitoring.process.history.checkpoints import (
    Checkpoints,
    causing_events,
    checkpoints_of,
    commands_of,
    consequences_of,
)
from monitoring.process.history.workflow_history import workflow_transitions
from monitoring.process.revision.entries import (
    Entry,
    HistoryPage,
    ShownCommand,
    status_change,
)
from monitoring.process.revision.moment import ProcessMoment
from monitoring.process.revision.overtaking import find_overtaking
from monitoring.queries.keys_by_time import first_since
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
    Verdict,
)

PAGE = 50
"""The number of transitions on one page of a process manager's history."""

OF_WORKFLOW = 30
"""The number of transitions on one page of a workflow's history."""

LOOKED_AT = 1_000
"""The maximum number of events between the transitions of one page that the page reads, the newest."""

SLACK = 100
"""The number of keys by which the order of simultaneous events may differ from the order of receipt."""


@dataclass(frozen=True)
class Span:
    """The time between two transitions.

    Args:
        since: its beginning; None for no bound.
        until: its end, exclusive; None for no bound.
    """

    since: datetime | None
    until: datetime | None

    @classmethod
    def of_page(cls, page: Checkpoints) -> Span:
        """Return the span of a page, without a bound where the history ends."""
        return cls(
            page.page[-1].at if page.next else None,
            page.page[0].at if page.page and not page.newest else None,
        )

    def has(self, at: datetime) -> bool:
        """Whether a time lies in the span."""
        begun = self.since is None or at >= self.since
        return begun and (self.until is None or at < self.until)

    @cached_property
    def below(self) -> int | None:
        """A key higher than the key of any event received in the span; None for no bound."""
        if self.until is None:
            return None
        return first_since(InboxEvent, "received_at", self.until) + SLACK

    def events(self, instance: ProcessInstance) -> QuerySet[InboxEvent]:
        """Return the events of a process in the span, newest first, with a few from before and after it."""
        rows = instance.events.order_by("-pk")
        if self.since is not None:
            first = first_since(InboxEvent, "received_at", self.since)
            rows = rows.filter(pk__gte=first - SLACK)
        return rows if self.below is None else rows.filter(pk__lt=self.below)


def history_of(moment: ProcessMoment, before: int | None = None) -> HistoryPage:
    """Read one page of the history of a process until a moment, newest first.

    Args:
        moment: the moment.
        before: only transitions to revisions below this one.
    """
    if moment.is_past:
        before = min(before or moment.revision + 1, moment.revision + 1)
    rows = moment.present.checkpoints.all()
    if moment.is_workflow:
        page = checkpoints_of(rows.defer("data"), before, OF_WORKFLOW)
        entries = workflow_transitions(moment, page)
    else:
        page = checkpoints_of(rows, before, PAGE)
        entries = manager_transitions(moment, page)
    span = Span.of_page(page)
    unmoved, cut = other_events(moment.present, span)
    entries += unmoved
    events = [entry.event for entry in entries if entry.event is not None]
    entries += operator_actions(moment.present, events, span)
    entries.sort(key=lambda entry: (entry.at, entry.revision or 0), reverse=True)
    _add_links(entries, events, moment, page, span)
    older = page.page[-1].revision if page.next else None
    return HistoryPage(_rows_until(moment, entries), older, len(page.page), cut)


def _add_links(
    entries: Iterable[Entry],
    events: Iterable[InboxEvent],
    moment: ProcessMoment,
    page: Checkpoints,
    span: Span,
) -> None:
    """Add to the rows of a page their commits, the transitions they led to, and overtaking events."""
    # If the page has all checkpoints, it has all events that moved the process.
    all_moved = page.newest and not page.next and not moment.is_workflow
    moved = [one for one in events if one.revision is not None] if all_moved else None
    ahead = find_overtaking(moment.present, events, span.below, moved)
    commits = {checkpoint.cause: checkpoint.revision for checkpoint in page.page}
    leading = consequences_of(moment, page.page)
    for entry in entries:
        entry.commit = entry.revision or commits.get(entry.cause)
        entry.leads_to = leading.get(entry.revision or 0)
        entry.overtaken_by = ahead.get(entry.event.pk) if entry.event else None


def _rows_until(moment: ProcessMoment, entries: list[Entry]) -> list[Entry]:
    """Return the rows until a moment, with the status of their commands at that moment."""
    if moment.at is None:
        return entries
    found = [entry for entry in entries if entry.at <= moment.at]
    for entry in found:
        entry.is_moment = entry.revision == moment.revision
        for one in entry.commands:
            command = one.command
            if command.finished_at is not None and command.finished_at > moment.at:
                command.status = CommandStatus.READY
                command.error = command.answer = ""
    return found


def manager_transitions(moment: ProcessMoment, page: Checkpoints) -> list[Entry]:
    """Return the rows of a process manager's transitions, and of the answers to their commands."""
    instance, versions = moment.present, moment.versions
    commands, events = commands_of(instance, page), causing_events(instance, page)
    deadlines = known_graph(instance.definition).deadlines
    hidden = names_of(instance.definition)
    entries = [
        _transition(
            checkpoint,
            _changes(earlier, checkpoint, moment, hidden),
            commands.get(checkpoint.revision, []),
            events.get(checkpoint.revision),
            deadlines.get(checkpoint.edge),
        )
        for checkpoint, earlier in page.rows
    ]
    versions.add_changes(entries)
    return [*entries, *deliveries(commands)]


def _transition(
    checkpoint: Checkpoint,
    changes: list[FieldChange],
    commands: list[ShownCommand],
    event: InboxEvent | None,
    deadline: Edge | None,
) -> Entry:
    beside = event.source if event else _deadline_effects(deadline) if deadline else ""
    return Entry(
        checkpoint.at,
        event.type if event else checkpoint.said,
        source=beside,
        revision=checkpoint.revision,
        changes=changes,
        commands=commands,
        event=event,
        status=checkpoint.status,
    )


def _changes(
    earlier: Checkpoint | None,
    checkpoint: Checkpoint,
    moment: ProcessMoment,
    hidden: frozenset[str],
) -> list[FieldChange]:
    """Return the changes of a transition; the status only if neither an event nor a deadline caused it."""
    if earlier is None:
        start = first_step(stored_graph(moment.versions.definition_at(0)))
        changed = _step_change(start, _step(checkpoint), moment.versions.labels)
        return [*changed, *differences({}, checkpoint.data, hidden)]
    changed = _step_change(_step(earlier), _step(checkpoint), moment.versions.labels)
    cause = checkpoint.moved_by
    if cause is None or cause.kind not in (CauseKind.EVENT, CauseKind.DEADLINE):
        changed += status_change(earlier.status, checkpoint.status)
    return [*changed, *differences(earlier.data, checkpoint.data, hidden)]


def _deadline_effects(deadline: Edge) -> str:
    """Return the escalation, assignment and notices of a deadline, in words."""
    said = [_("escalated")] if deadline.escalates else []
    said += [words.assign_text(deadline.owner)] if deadline.owner else []
    said += [words.notify_text(deadline.notifies)] if deadline.notifies else []
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
    names = steps if isinstance(steps, list | dict) else filter(None, [steps])
    return ", ".join(map(str, names))


def deliveries(commands: Mapping[int, list[ShownCommand]]) -> list[Entry]:
    """Return the answers to commands that were carried out after their commit."""
    return [
        Entry(
            command.finished_at,
            command.answer or _outcome(command),
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


def _outcome(command: IssuedCommand) -> str:
    """Return the outcome, in words, of a settled command without an event; a refusal is an answer too."""
    if command.status == CommandStatus.FAILED:
        return _("Not carried out")
    if command.status == CommandStatus.SKIPPED:
        return _("Given up")
    return _("Carried out")


def other_events(instance: ProcessInstance, span: Span) -> tuple[list[Entry], bool]:
    """Return the newest events of a span that did not move the process, and whether there may be more."""
    has_moved = Q(verdict__in=[Verdict.STARTED, Verdict.MOVED])
    untried = Q(verdict=Verdict.RECEIVED, error="")
    told = span.events(instance).annotate(told=~(has_moved | untried))
    looked_at = list(told.values_list("pk", "received_at", "told")[: LOOKED_AT + 1])
    wanted = [
        pk for pk, at, is_told in looked_at[:LOOKED_AT] if is_told and span.has(at)
    ]
    rows = InboxEvent.objects.filter(pk__in=wanted[:PAGE]).order_by("-pk")
    cut = len(wanted) > PAGE or len(looked_at) > LOOKED_AT
    return list(map(_event_entry, rows)), cut


def operator_actions(
    instance: ProcessInstance, events: Iterable[InboxEvent], span: Span
) -> list[Entry]:
    """Return the actions of operators in a span, and those on its events before they were matched to the process.

    Args:
        instance: the process.
        events: the shown events of the span.
        span: the time.
    """
    within = Q()
    if span.since is not None:
        within &= Q(at__gte=span.since)
    if span.until is not None:
        within &= Q(at__lt=span.until)
    # Each part has an index; one condition for both would have none.
    own = OperatorAction.objects.filter(within, instance=instance)
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
    label = operation.label if operation else action.action
    refused = action.result == OperatorAction.Result.REFUSED
    return Entry(
        action.at,
        _("%(action)s by %(actor)s") % {"action": label, "actor": action.actor_name},
        source=action.reason,
        kind="action",
        cause=str(Cause.of(CauseKind.OPERATOR, action.key)),
        error=action.said if refused else "",
        status="refused" if refused else "done",
    )
