"""Delivering the events of a claimed batch, in one commit where possible, and the events of each process in order.

Without a lock, a group decides which events of several processes share a commit. Only pure decisions share one: the
event moves a process without trouble, and no command is handled inside the commit. Nothing has happened outside by
then, so other workers may take decided events over before they are written. Every other event, and each that the group
commit leaves out, is delivered singly (`delivery`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from uuid import UUID

from orchestrator import registry
from orchestrator.definition import Decision, ProcessManager
from orchestrator.engine.change.change import is_independent
from orchestrator.engine.change.committing import commit_together
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.events.delivery import deliver_claimed, settle_event
from orchestrator.engine.sql.batch import Clock
from orchestrator.engine.sql.table import Claimed
from orchestrator.engine.sql.tables import instances
from orchestrator.engine.storage import definitions, stored_values
from orchestrator.engine.storage.application_code.calling import call_application
from orchestrator.engine.work.claims import Lines
from orchestrator.engine.work.worker_slice import Holding, WorkerSlice
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    ProcessInstance,
    Status,
    Verdict,
)

CALM = (Status.RUNNING, Status.WAITING)
"""The statuses of a process without trouble."""


class EventGroup:
    """The processes of one claimed batch of events that may share a commit, as they were read.

    Args:
        events: the batch.
    """

    def __init__(self, events: Iterable[InboxEvent]) -> None:
        simple = [event for event in events if _is_simple(event)]
        ids = {event.process_id for event in simple} - {None}
        keys = defaultdict[str, set[str]](set)
        for event in simple:
            if event.process_id is None:
                keys[event.target].add(event.correlation_key)
        self._known: dict[UUID | None, ProcessInstance] = {}
        self._of_key: dict[tuple[str, str], UUID] = {}
        """The live processes that had a key when they were read."""
        self._clock = Clock()
        if len(ids) + sum(map(len, keys.values())) > 1:
            self._read(ids, keys)

    def _read(
        self, ids: Collection[UUID | None], keys: Mapping[str, Collection[str]]
    ) -> None:
        now: datetime | None = None
        if ids:
            found, now = instances.read_many(ids)
            self._known |= found
        for name, of_name in keys.items():
            live, at = instances.read_live(name, of_name)
            self._known |= {one.pk: one for one in live.values()}
            self._of_key |= {(name, key): one.pk for key, one in live.items()}
            now = at or now
        if len(self._known) > 1:
            self._clock = Clock(now)
        else:
            self._known.clear()  # one alone shares no commit

    def decide(self, event: InboxEvent) -> ManagerChange | None:
        """Return the change that an event causes, not written; None for an event that is delivered singly."""
        instance = self._instance_of(event)
        if instance is None or not _is_simple(event) or instance.status not in CALM:
            return None
        if not is_independent(instance):
            return None
        del self._known[instance.pk]  # until it is written
        try:
            return self._decided_on(event, instance)
        except BaseException:  # noqa: BLE001  # the single delivery stores the error
            return None

    def _instance_of(self, event: InboxEvent) -> ProcessInstance | None:
        """The process of an event as it is known here; None for one that is not, and for one that has lost its key."""
        key = (event.target, event.correlation_key)
        return self._known.get(event.process_id or self._of_key.get(key))

    def _decided_on(
        self, event: InboxEvent, instance: ProcessInstance
    ) -> ManagerChange | None:
        definition = definitions.definition_of(instance)
        if not issubclass(definition, ProcessManager):
            return None
        manager = stored_values.read_manager(definition, instance, instance.step)
        message = stored_values.read_event(event)
        decision = call_application(
            event.type, manager.decide, manager.step, manager.data, message
        )
        if decision.outcome != "moved" or not _is_pure(decision):
            return None
        cause = Cause.of(CauseKind.EVENT, event.pk)
        change = ManagerChange(instance, cause, self._clock.now(), event.attempt)
        change.alone = True
        for command in decision.commands:
            change.execute(command)
        change.take(definition, decision)
        settle_event(event, change, Verdict.MOVED)
        return change

    def learn(self, instance: ProcessInstance) -> None:
        """Note that a process is stored as it is here."""
        self._known[instance.pk] = instance


def _is_simple(event: InboxEvent) -> bool:
    """Whether an event names its process, by its id or its key, and this is its first attempt."""
    return bool(
        (event.process_id is not None or (event.target and event.correlation_key))
        and not event.starts
        and event.verdict == Verdict.RECEIVED
        and event.attempt == 1
        and not event.error
    )


def _is_pure(decision: Decision) -> bool:
    """Whether none of its commands is handled inside the commit."""
    handlers = (
        registry.command_handler(type(one).__name__) for one in decision.commands
    )
    return all(handler is not None and handler.after_commit for handler in handlers)


ClaimedEvent = Claimed[InboxEvent]


Decided = tuple[ClaimedEvent, ManagerChange]
"""An event that is decided and not written, and the change that it causes."""


class EventRunner:
    """Delivers the events that one worker claims.

    Args:
        worker_slice: the worker.
    """

    def __init__(self, worker_slice: WorkerSlice) -> None:
        self.worker_slice = worker_slice
        self._decided = Holding[Decided]()
        """Decided events by their lines."""
        self._names = set[tuple[str, str]]()
        """Their sources and ids: an event may have a row for each of several definitions."""
        self.begin(Lines([]))

    def begin(self, lines: Lines) -> None:
        """Begin a claimed batch."""
        self._lines = lines
        self._group = EventGroup(item.work for item in lines.mine)

    @property
    def holds(self) -> bool:
        """Whether events are decided and not written: other workers may take them over."""
        return bool(self._decided)

    def finish_before(self, item: ClaimedEvent) -> None:
        """Write the decided event before this one in its line, if there is one."""
        if self._decided and self._lines.line_of(item) in self._decided:
            self.finish()

    def run(self, item: ClaimedEvent) -> None:
        """Deliver an event, or decide it and write it later; stop its line if the event is not settled."""
        name = (item.work.source, item.work.event_id)
        with self.worker_slice.watched(item.work):
            change = self._group.decide(item.work)
            if change is not None:
                self._decided.hold(self._lines.line_of(item), (item, change))
                self._names.add(name)
            elif name not in self._names:
                self._deliver(item)
        if change is None and name in self._names:
            self.finish()  # what becomes of this row depends on that one
            with self.worker_slice.watched(item.work):
                self._deliver(item)
        if self._decided.are_due:
            self.finish()

    def finish(self) -> None:
        """Write the decided events, and deliver singly those that cannot share the commit."""
        left_out = decided = self._decided.take()
        self._names.clear()
        if len(decided) > 1:
            found = commit_together(decided, lambda one: (one[1], one[1].prepare()))
            left_out = found.left_out
            for _, change in found.done:
                self._group.learn(change.instance)
        for item, _ in left_out:
            with self.worker_slice.watched(item.work):
                self._deliver(item)

    def _deliver(self, item: ClaimedEvent) -> None:
        """Deliver an event singly; stop its line if it is not settled."""
        if not deliver_claimed(item.work):
            self._lines.stop(item)
