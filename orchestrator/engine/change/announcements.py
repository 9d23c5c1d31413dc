"""Telling the site, after the commit, what has changed; a receiver that fails cannot harm it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from django.db import transaction

from orchestrator.models import BulkOperation, InboxEvent, Incident, ProcessInstance
from orchestrator.signals import Change, committed


def announce(instance: ProcessInstance, steps: Mapping[str, str], edge: str) -> None:
    """Tells of a transition: the instance as it is now, the statuses of the step runs it touched, the edge it took."""
    touched = {node: str(status) for node, status in steps.items()}
    revision, status = instance.revision, str(instance.status)

    def tell() -> None:
        change = Change(
            instance.pk, instance.name, revision, status, touched, edge, time.time()
        )
        committed.send_robust(sender=ProcessInstance, change=change)

    transaction.on_commit(tell, robust=True)


def announce_event(event: InboxEvent) -> None:
    """Tells that an event's verdict, and nothing else, has changed."""

    def tell() -> None:
        change = Change(event.process_id, "", at=time.time())
        committed.send_robust(sender=InboxEvent, change=change)

    transaction.on_commit(tell, robust=True)


def announce_bulk(operation: BulkOperation) -> None:
    """Tells that a bulk operation is further."""

    def tell() -> None:
        change = Change(None, "", bulk=operation.pk, at=time.time())
        committed.send_robust(sender=BulkOperation, change=change)

    transaction.on_commit(tell, robust=True)


def announce_failures(definition: str) -> None:
    """Tells that people have said something of failures, of a definition if they have one."""

    def tell() -> None:
        committed.send_robust(
            sender=Incident, change=Change(None, definition, at=time.time())
        )

    transaction.on_commit(tell, robust=True)
