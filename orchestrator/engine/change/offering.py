"""Making events due: parked ones again, and those behind a settled one.

After each change of a process the oldest parked event that the process may take is offered. An index finds it, however
many events are parked. An offered event is undecided, as if it had just been received. If no step takes it, the
delivery parks it again and offers the next one behind it.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from orchestrator import registry
from orchestrator.definition import ProcessManager
from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.sql.batch import Statement, Touched
from orchestrator.engine.sql.tables import BY_ID, BY_KEY, events, instances
from orchestrator.engine.storage import definitions
from orchestrator.exceptions import UnknownDefinition
from orchestrator.models import InboxEvent, ProcessInstance, StepKind, Verdict
from orchestrator.models.inbox_event import UNDECIDED
from orchestrator.queue import wake_queue_after_commit

ENDED = 64
"""The number of parked events that an ended process turns away at once."""

Types = Collection[str] | None
"""Names of event types; None for any."""


def awaited_types(instance: ProcessInstance) -> Types:
    """Return the types of events that a process may take now, from its stored rows."""
    try:
        definition = definitions.definition_of(instance)
        if issubclass(definition, ProcessManager):
            return definition.handled_events(instance.step)
        open_waits = instance.step_runs.filter(kind=StepKind.WAIT, finished_at=None)
        nodes = set(open_waits.values_list("node", flat=True))
        return types_awaited_at(definitions.plan_of(instance), nodes)
    except UnknownDefinition:
        return None  # the delivery says so, and keeps the event until the code is back
    except BaseException:  # noqa: BLE001  # the application's function fails to make the graph
        return ()  # the change with which the process goes on offers them


def types_awaited_at(plan: Plan, nodes: Collection[str]) -> set[str]:
    """Return the types of events that steps of a workflow wait for."""
    vertices = (plan.vertices.get(node) for node in nodes)
    found = (vertex.step.event for vertex in vertices if vertex is not None)
    return {event.__name__ for event in found if event is not None}


def offer_oldest(process_id: UUID, types: Types, now: datetime) -> list[Statement]:
    """Return the update that offers the oldest parked event of these types, also to a worker that has claimed it."""
    table = events.name
    parked = f"SELECT MIN(id) AS id FROM {table} WHERE process_id = %s AND verdict = 'parked'"  # noqa: S608  # names are ours
    if types is None:
        return [_offered(f"id = ({parked})", [process_id], now)]
    if not types:
        return []
    names = sorted(registry.with_former_names(types))
    each = " UNION ALL ".join([f"{parked} AND type = %s"] * len(names))
    of_each = [value for name in names for value in (process_id, name)]
    return [_offered(f"id = (SELECT MIN(id) FROM ({each}) AS first)", of_each, now)]  # noqa: S608  # names are ours


def offer_event(event: InboxEvent, now: datetime) -> Statement:
    """Return the update that offers a parked event."""
    return _offered("id = %s", [event.pk], now)


def offer_leftovers(process_id: UUID, number: int, now: datetime) -> Statement:
    """Return the update that offers parked events to an ended process, which turns them away.

    Those that wait for other definitions look by themselves; they alone have a due time without a patience.
    """
    idle = (
        f"SELECT id FROM {events.name} WHERE process_id = %s AND verdict = 'parked'"  # noqa: S608  # names are ours
        " AND handled_at IS NOT NULL AND (wake_at IS NULL OR patience_until IS NOT NULL)"
        f" ORDER BY type, id LIMIT {number}"
    )
    return _offered(f"id IN ({idle})", [process_id], now)


def wake_queue_of(instance: ProcessInstance) -> None:
    """Wake the queue of a process's events."""
    with suppress(UnknownDefinition):
        wake_queue_after_commit(definitions.definition_of(instance).queue)


def _offered(which: str, params: list[Any], now: datetime) -> Statement:
    due = connection.ops.adapt_datetimefield_value(now)
    return Statement(
        f"UPDATE {events.name} SET wake_at = CASE WHEN owner = '' THEN %s ELSE wake_at END, handled_at = NULL"  # noqa: S608  # names are ours
        f" WHERE verdict = 'parked' AND {which}",
        [due, *map(_stored, params)],
        Touched(InboxEvent._meta.db_table, "condition"),
    )


def _stored(value: Any) -> Any:
    if isinstance(value, UUID):
        return events.fields["process_id"].get_db_prep_save(value, connection)
    return value


def is_offered(event: InboxEvent) -> bool:
    """Whether a claimed event is a parked one that was offered, before its claim or since."""
    if event.verdict != Verdict.PARKED:
        return False
    stored = InboxEvent.objects.filter(pk=event.pk, handled_at=None)
    return event.handled_at is None or stored.exists()


def is_overtaking(event: InboxEvent, instance: ProcessInstance) -> bool:
    """Whether an older event of a locked process is undecided: it came to be so after the claim of this one.

    A parked event was offered, or a failed one is to be tried again.
    """
    parked = instance.parked > (event.verdict == Verdict.PARKED)
    if not parked and instance.status not in TROUBLED:
        return False  # no other event is parked, and none has failed
    older = InboxEvent.objects.filter(UNDECIDED, process=instance.pk, pk__lt=event.pk)
    return older.exists()


def unpark(
    event: InboxEvent, instance: ProcessInstance | None, now: datetime
) -> list[Statement]:
    """Return the writes after an event is parked no more, and has not moved its locked process."""
    if instance is None or event.verdict != Verdict.PARKED:
        return []
    instance.parked -= 1
    less = instances.update({"parked": instance.parked}, {"id": instance.pk})
    if instance.paused_at is not None or instance.finished_at is not None:
        return [less]
    return [less, *offer_oldest(instance.pk, awaited_types(instance), now)]


def wake_followers(
    event: InboxEvent, instance: ProcessInstance | None, now: datetime
) -> list[Statement]:
    """Return the updates that wake the events behind a failing event that is settled now."""
    if not event.error:
        return []  # no event waits for longer than a moment
    target, key = event.target, event.correlation_key
    if instance is not None:
        target, key = instance.name, instance.correlation_key
    fresh = {"owner": "", "error": "", "remaining": None}  # also an offered one

    found: list[Statement] = []
    due = {"wake_at": now}
    if event.process_id is not None:
        line: dict[str, Any] = {"process_id": event.process_id}
        found.append(events.update(due, {**line, **fresh}, None, BY_ID))
    if key:
        line = {"target": target, "correlation_key": key}
        found.append(events.update(due, {**line, **fresh}, None, BY_KEY))
    return found
