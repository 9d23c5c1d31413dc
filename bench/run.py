"""Where a measurement takes place: queues and a definition of its own, and a clean database afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from orchestrator import registry
from orchestrator.engine.storage import definitions
from orchestrator.models import Definition, InboxEvent, ProcessInstance

QUEUE = "bench"
RAW_QUEUE = "bench-rq"
PATIENCE_SECONDS = 120
"""How long a measurement waits for its work to be done."""


@contextmanager
def running(definition: registry.Declared) -> Iterator[None]:
    """Makes a definition of the queue QUEUE known while the block lasts, and removes what was written."""
    for name in (QUEUE, RAW_QUEUE):
        settings.RQ_QUEUES.setdefault(name, settings.RQ_QUEUES["default"])
    registry.register(definition)
    try:
        yield
    finally:
        registry.definitions.pop((definition.name, definition.version))
        InboxEvent.objects.filter(queue=QUEUE).delete()
        ProcessInstance.objects.filter(name=definition.name).delete()
        Definition.objects.filter(name=definition.name).delete()
        definitions.forget()
