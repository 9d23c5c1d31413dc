"""The surroundings of a measurement: queues and a definition of its own, and a clean database afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection, transaction

from bench.game import BenchFailed
from orchestrator import registry
from orchestrator.configuration.conf import conf
from orchestrator.engine.storage import definitions
from orchestrator.models import Definition, InboxEvent, ProcessInstance
from orchestrator.models.work import Work
from orchestrator.queue import redis_responds, wake_queue

QUEUE = "bench"
HELD = "bench-held"
"""A queue without workers: prepared work waits there for the clock to start."""
RAW_QUEUE = "bench-rq"


@contextmanager
def registered_definition(definition: registry.DefinitionClass) -> Iterator[None]:
    """Register a definition of the queue QUEUE for the block, and remove its rows afterwards."""
    add_queues()
    registry.register_definition(definition)
    try:
        yield
    finally:
        registry.definitions.pop((definition.name, definition.version))
        remove(definition)
        Definition.objects.filter(name=definition.name).delete()
        definitions.forget_definitions()


def check_ready() -> None:
    """Check that everything that a measurement needs is there.

    Raises:
        BenchFailed: something is missing.
    """
    add_queues()
    if Definition._meta.db_table not in connection.introspection.table_names():
        raise BenchFailed("The database has no tables yet: python3 manage.py migrate")
    if not redis_responds(QUEUE):
        raise BenchFailed(
            f"Redis does not answer at {settings.REDIS_URL}: start it, or `up`, or set REDIS_URL."
        )


def add_queues() -> None:
    """Add the measurement's queues to those of the settings."""
    for name in (QUEUE, HELD, RAW_QUEUE):
        settings.RQ_QUEUES.setdefault(name, settings.RQ_QUEUES[conf().DEFAULT_QUEUE])


def remove(definition: registry.DefinitionClass) -> None:
    """Remove the processes of a definition, and all events of the measurement."""
    InboxEvent.objects.filter(queue__in=(QUEUE, HELD)).delete()
    ProcessInstance.objects.filter(name=definition.name).delete()


@contextmanager
def hold_back(definition: registry.DefinitionClass) -> Iterator[None]:
    """Hold back what the block starts and sends, until `release`."""
    queue, definition.queue = definition.queue, HELD
    try:
        yield
    finally:
        definition.queue = queue


def release(bells: int) -> None:
    """Give the held work to the workers, all at once, and ring so many bells."""
    with transaction.atomic():
        for model in Work.__subclasses__():
            # Along the index of what is due, whatever else the database holds: the clock runs.
            held = model._default_manager.filter(queue=HELD, wake_at__isnull=False)
            held.update(queue=QUEUE)
    for _ in range(bells):
        wake_queue(QUEUE)
