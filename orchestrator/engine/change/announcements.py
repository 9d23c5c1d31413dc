"""Announcing committed changes to live pages, by the signal `committed`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Model

from orchestrator.engine.storage.application_code.calling import CommitHook
from orchestrator.models import BulkOperation, InboxEvent, Incident, ProcessInstance
from orchestrator.signals import Change, committed


def announce(instance: ProcessInstance, steps: Mapping[str, str], edge: str) -> None:
    """Announce a transition: the instance as it is now, the new statuses of its step runs, and the edge."""
    touched = {node: str(status) for node, status in steps.items()}
    stands = {"revision": instance.revision, "status": str(instance.status)}
    about = {**stands, "steps": touched, "edge": edge}
    _tell(ProcessInstance, instance.pk, instance.name, **about)


def announce_event(event: InboxEvent) -> None:
    """Announce that only an event's verdict has changed."""
    _tell(InboxEvent, event.process_id)


def announce_bulk(operation: BulkOperation) -> None:
    """Announce progress of a bulk operation."""
    _tell(BulkOperation, None, bulk=operation.pk)


def announce_failures(definition: str) -> None:
    """Announce that a person has marked failures, of one definition or of several."""
    _tell(Incident, None, definition)


class _Announcements(CommitHook):
    """Changes of which live pages are told after their commit, in one call of the application's code."""

    def __init__(self) -> None:
        super().__init__("a receiver of `committed`", self._tell)
        self.changes: list[tuple[type[Model], dict[str, Any]]] = []

    def __call__(self) -> None:
        # After a receiver has ended a call, the next call tells of the rest.
        while self.changes:
            super().__call__()

    def _tell(self) -> None:
        while self.changes:
            sender, about = self.changes.pop(0)
            committed.send_robust(sender=sender, change=Change(**about, at=time.time()))


_together = ContextVar[_Announcements | None]("_together", default=None)
"""The announcements that wait for the end of the innermost `announce_together`."""


@contextmanager
def announce_together() -> Iterator[None]:
    """Send the announcements made inside this context at its end, after the commit: that costs less than each alone."""
    found = _Announcements()
    token = _together.set(found)
    try:
        yield
    finally:
        _together.reset(token)
        transaction.on_commit(found)


def _tell(
    sender: type[Model], process_id: UUID | None, name: str = "", **about: Any
) -> None:
    """Send the signal to live pages after the commit, which a failing receiver cannot harm."""
    found = _together.get() or _Announcements()
    found.changes.append((sender, {"process_id": process_id, "name": name, **about}))
    if _together.get() is None:
        transaction.on_commit(found)
