"""Delivering the events of a claimed batch, in one commit where possible, and the events of each process in order."""

from __future__ import annotations

from orchestrator.engine.change.committing import commit_together
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.events.event_group import EventGroup
from orchestrator.engine.sql.table import Claimed
from orchestrator.engine.work.event_order import Lines
from orchestrator.engine.work.held_work import Holding
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.models import InboxEvent

Item = Claimed[InboxEvent]


Decided = tuple[Item, ManagerChange]
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
        self.begin(Lines([]))

    def begin(self, lines: Lines) -> None:
        """Begin a claimed batch."""
        self._lines = lines
        self._group = EventGroup(item.work for item in lines.mine)

    @property
    def holds(self) -> bool:
        """Whether events are decided and not written: other workers may take them over."""
        return bool(self._decided)

    def finish_before(self, item: Item) -> None:
        """Write the decided event before this one in its line, if there is one."""
        if self._decided and self._lines.line_of(item) in self._decided:
            self.finish()

    def run(self, item: Item) -> None:
        """Deliver an event, or decide it and write it later; stop its line if the event is not settled."""
        with self.worker_slice.watched(item.work):
            change = self._group.decide(item.work)
            if change is not None:
                self._decided.hold(self._lines.line_of(item), (item, change))
            elif not deliver_claimed(item.work):
                self._lines.stop(item)
        if self._decided.are_due:
            self.finish()

    def finish(self) -> None:
        """Write the decided events, and deliver singly those that cannot share the commit."""
        left_out = decided = self._decided.take()
        if len(decided) > 1:
            found = commit_together(decided, lambda one: (one[1], one[1].prepare()))
            left_out = found.left_out
            for _, change in found.done:
                self._group.learn(change.instance)
        for item, _ in left_out:
            with self.worker_slice.watched(item.work):
                if not deliver_claimed(item.work):
                    self._lines.stop(item)
