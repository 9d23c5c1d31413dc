"""Where a measurement takes place: queues and a definition of its own, and a clean database afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection, transaction

from bench.game import BenchFailed
from orchestrator import registry
from orchestrator.conf import conf
from orchestrator.engine.storage import definitions
from orchestrator.models import Definition, InboxEvent, ProcessInstance
from orchestrator.models.work import Work
from orchestrator.queue import answers, wake_queue

QUEUE = "bench"
HELD = "bench-held"
"""A queue that nobody works on: what is prepared waits there for the clock to start."""
RAW_QUEUE = "bench-rq"


@contextmanager
def running(definition: registry.Declared) -> Iterator[None]:
    """Makes a definition of the queue QUEUE known while the block lasts, and removes what was written."""
    know_queues()
    registry.register(definition)
    try:
        yield
    finally:
        registry.definitions.pop((definition.name, definition.version))
        remove(definition)
        Definition.objects.filter(name=definition.name).delete()
        definitions.forget()


def check_ready() -> None:
    """Looks whether there is what every measurement needs.

    Raises:
        BenchFailed: saying what is missing.
    """
    know_queues()
    if Definition._meta.db_table not in connection.introspection.table_names():
        raise BenchFailed("The database has no tables yet: python3 manage.py migrate")
    if not answers(QUEUE):
        raise BenchFailed(
            f"Redis does not answer at {settings.REDIS_URL}: start it, or `up`, or set REDIS_URL."
        )


def know_queues() -> None:
    """Has the measurement's queues beside those of the settings."""
    for name in (QUEUE, HELD, RAW_QUEUE):
        settings.RQ_QUEUES.setdefault(name, settings.RQ_QUEUES[conf().DEFAULT_QUEUE])


def remove(definition: registry.Declared) -> None:
    """Removes the processes of a definition, and all events of the measurement."""
    InboxEvent.objects.filter(queue__in=(QUEUE, HELD)).delete()
    ProcessInstance.objects.filter(name=definition.name).delete()


@contextmanager
def held_back(definition: registry.Declared) -> Iterator[None]:
    """What is started and sent inside the block waits until it is released."""
    queue, definition.queue = definition.queue, HELD
    try:
        yield
    finally:
        definition.queue = queue


def release(bells: int) -> None:
    """Gives what was held back to the workers, all at once, and rings so many bells."""
    with transaction.atomic():
        for model in Work.__subclasses__():
            # Along the index of what is due, whatever else the database holds: the clock runs.
            held = model._default_manager.filter(queue=HELD, wake_at__isnull=False)
            held.update(queue=QUEUE)
    for _ in range(bells):
        wake_queue(QUEUE)
