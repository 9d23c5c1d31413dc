"""Signals after the commit: they tell the site what has changed, and a receiver that fails cannot harm the commit."""

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
    """Tells of a transition: the instance as it is now, the statuses of the step runs it touched, the edge it took."""
    touched = {node: str(status) for node, status in steps.items()}
    stands = {"revision": instance.revision, "status": str(instance.status)}
    about = {**stands, "steps": touched, "edge": edge}
    _tell(ProcessInstance, instance.pk, instance.name, **about)


def announce_event(event: InboxEvent) -> None:
    """Tells that an event's verdict, and nothing else, has changed."""
    _tell(InboxEvent, event.process_id)


def announce_bulk(operation: BulkOperation) -> None:
    """Tells that a bulk operation is further."""
    _tell(BulkOperation, None, bulk=operation.pk)


def announce_failures(definition: str) -> None:
    """Tells that people have marked failures, and of which definition if there is one."""
    _tell(Incident, None, definition)


def _tell(
    sender: type[Model], process_id: UUID | None, name: str = "", **about: Any
) -> None:
    def tell() -> None:
        change = Change(process_id, name, **about, at=time.time())
        committed.send_robust(sender=sender, change=change)

    transaction.on_commit(tell, robust=True)
