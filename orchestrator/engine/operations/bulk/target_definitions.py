"""The names of the definitions of many processes or events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db.models import Model

from orchestrator.engine.sql.batch import chunks
from orchestrator.models import InboxEvent, ProcessInstance

AT_ONCE = 1_000
"""Keys of one statement."""


def definitions_of_each(
    model: type[Model] | None, keys: Iterable[Any]
) -> dict[Any, str]:
    """Return the names of definitions by key: "" for an event without one, no entry for a row that is gone.

    Args:
        model: of processes, or of events.
        keys: of the rows.
    """
    found: dict[Any, str] = {}
    for some in chunks(list(keys), AT_ONCE):
        if model is InboxEvent:
            events = InboxEvent.objects.filter(pk__in=some)
            rows = events.values_list("pk", "process__name", "target")
            found |= {pk: name or target for pk, name, target in rows}
        else:
            processes = ProcessInstance.objects.filter(pk__in=some)
            found |= dict(processes.values_list("pk", "name"))
    return found
