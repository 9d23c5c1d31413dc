"""Delivering the events of a claimed batch, together where that can be, and each line of them in its order."""

from __future__ import annotations

from contextlib import AbstractContextManager

from orchestrator.conf import conf
from orchestrator.engine.claims import leases
from orchestrator.engine.claims.lines import Lines
from orchestrator.engine.claims.worker_slice import Reporting, WorkerSlice
from orchestrator.engine.events.delivery import deliver
from orchestrator.engine.events.group import EventGroup
from orchestrator.engine.storage.table import Claimed
from orchestrator.engine.storage.tables import events
from orchestrator.models import InboxEvent

Item = Claimed[InboxEvent]


class EventRunner:
    """Delivers the events that one worker claims.

    Args:
        worker_slice: the worker.
    """

    def __init__(self, worker_slice: WorkerSlice) -> None:
        self.worker_slice = worker_slice
        self.begin(Lines([]))

    def begin(self, lines: Lines) -> None:
        """Takes a claimed batch in hand."""
        self._lines = lines
        self._group = EventGroup(item.work for item in lines.mine)
        self._decided: dict[object, Item] = {}

    @property
    def holds(self) -> bool:
        """Whether events are decided and not written: others may take them over."""
        return bool(self._decided)

    def make_way(self, item: Item) -> None:
        """Writes what comes before an event in its line."""
        if self._decided and self._lines.line_of(item) in self._decided:
            self.finish()

    def run(self, item: Item) -> None:
        """Delivers an event, or decides it for now; notes when what is behind it must wait."""
        with self._watched(item):
            if self._group.decide(item.work):
                self._decided[self._lines.line_of(item)] = item
            elif not deliver(item.work):
                self._lines.stop(item)
        if self._group.are_due:
            self.finish()

    def finish(self) -> None:
        """Writes what is decided, and delivers by itself what cannot be written with others."""
        decided, self._decided = self._decided, {}
        left_out = {event.pk for event in self._group.write()}
        for item in decided.values():
            if item.work.pk in left_out:
                with self._watched(item):
                    if not deliver(item.work):
                        self._lines.stop(item)

    def _watched(self, item: Item) -> AbstractContextManager[Reporting]:
        name = leases.name_of(events, item.work.pk)
        return self.worker_slice.watch(conf().EVENT_TIMEOUT, name)
