"""Signals after the commit: they tell live pages of a change, and a failing receiver cannot harm the commit."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Model

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


def _tell(
    sender: type[Model], process_id: UUID | None, name: str = "", **about: Any
) -> None:
    def tell() -> None:
        change = Change(process_id, name, **about, at=time.time())
        committed.send_robust(sender=sender, change=change)

    transaction.on_commit(tell, robust=True)
