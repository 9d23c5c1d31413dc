"""Delivering the events of a claimed batch, together where that can be, and each line of them in its order."""

from __future__ import annotations

from orchestrator.engine.change.committing import commit_together
from orchestrator.engine.change.manager import ManagerChange
from orchestrator.engine.claims.held import Holding
from orchestrator.engine.claims.lines import Lines
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.events.delivery import deliver
from orchestrator.engine.events.group import EventGroup
from orchestrator.engine.storage.table import Claimed
from orchestrator.models import InboxEvent

Item = Claimed[InboxEvent]


Decided = tuple[Item, ManagerChange]
"""An event that is decided and not written, and the change that it leads to."""


class EventRunner:
    """Delivers the events that one worker claims.

    Args:
        worker_slice: the worker.
    """

    def __init__(self, worker_slice: WorkerSlice) -> None:
        self.worker_slice = worker_slice
        self._decided = Holding[Decided]()
        """By their lines."""
        self.begin(Lines([]))

    def begin(self, lines: Lines) -> None:
        """Begins a claimed batch."""
        self._lines = lines
        self._group = EventGroup(item.work for item in lines.mine)

    @property
    def holds(self) -> bool:
        """Whether events are decided and not written: others may take them over."""
        return bool(self._decided)

    def finish_before(self, item: Item) -> None:
        """Writes what comes before an event in its line."""
        if self._decided and self._lines.line_of(item) in self._decided:
            self.finish()

    def run(self, item: Item) -> None:
        """Delivers an event, or decides it for now; notes when what is behind it must wait."""
        with self.worker_slice.watched(item.work):
            change = self._group.decide(item.work)
            if change is not None:
                self._decided.hold(self._lines.line_of(item), (item, change))
            elif not deliver(item.work):
                self._lines.stop(item)
        if self._decided.are_due:
            self.finish()

    def finish(self) -> None:
        """Writes what is decided, and delivers by itself what cannot be written with others."""
        left_out = decided = self._decided.take()
        if len(decided) > 1:
            found = commit_together(decided, lambda one: (one[1], one[1].prepared()))
            left_out = found.left_out
            for _, change in found.done:
                self._group.learn(change.instance)
        for item, _ in left_out:
            with self.worker_slice.watched(item.work):
                if not deliver(item.work):
                    self._lines.stop(item)
