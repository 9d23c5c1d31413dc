"""Stored values that the running code cannot read: results, elements, and messages that wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import Q, QuerySet

from orchestrator import registry
from orchestrator.definition.annotations import MISSING
from orchestrator.definition.declarations.message_forms import (
    decode_message,
    decode_stored,
)
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.validation.signatures import step_parameters
from orchestrator.exceptions import InvalidMessage, UnknownEventType
from orchestrator.models import (
    Definition,
    Delivery,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.models.inbox_event import KEPT, UNDECIDED

MOST = 10_000
"""The newest rows of each type that are read."""

KEEP_TYPE = "Keep the type, give a new field a default, or raise the version."


@dataclass(frozen=True)
class Finding:
    """A stored thing that the running code cannot go on with, or goes on with in another way.

    Args:
        what: what has changed, and for how many rows.
        remedy: what to do before the deploy.
    """

    what: str
    remedy: str


def unreadable_results(plan: Plan, runs: QuerySet[StepRun]) -> Iterator[str]:
    """Yield the stored results of one process that cannot be read."""
    for run in _done(runs).filter(node__in=plan.vertices):
        form = _result_type(plan[run.node])
        if reason := _why_unreadable(partial(decode_stored, form), run.result):
            yield f"results of {run.node} cannot be read: {reason}"


def _done(runs: QuerySet[StepRun]) -> QuerySet[StepRun]:
    """The visits among some that have a result that steps may read."""
    given = {"status__in": [StepStatus.DONE, StepStatus.SKIPPED]}
    kinds = [StepKind.UNDO, StepKind.JOIN, StepKind.MAP]
    return runs.filter(result__isnull=False, **given).exclude(kind__in=kinds)


def _result_type(vertex: Vertex) -> Any:
    return vertex.returns if vertex.each is not None else vertex.result_type


def results_of(
    row: Definition,
    plan: Plan,
    name: str,
    vertex: Vertex,
    live: QuerySet[ProcessInstance],
) -> Iterator[Finding]:
    """Yield the findings about results of one step that a later step may read, and about open elements of a map."""
    runs = StepRun.objects.filter(
        instance__in=_that_may_read(plan, name, live), node=name
    )
    yield from unreadable_values(
        f"{row}: results of {name}",
        newest(_done(runs), "result"),
        partial(decode_stored, _result_type(vertex)),
        KEEP_TYPE,
    )
    items = [one.parameter for one in vertex.bindings if one.source == "item"]
    types = {one.name: one.annotation for one in step_parameters(vertex.step)}
    begun = StepRun.objects.filter(
        instance__in=live, node=name, kind=StepKind.ITEM, finished_at=None
    )
    for form in [
        types[item] for item in items if types.get(item, MISSING) is not MISSING
    ]:
        yield from unreadable_values(
            f"{row}: elements of {name}",
            newest(begun, "element"),
            partial(decode_stored, form),
            KEEP_TYPE,
        )


def _that_may_read(
    plan: Plan, name: str, live: QuerySet[ProcessInstance]
) -> QuerySet[ProcessInstance]:
    """The processes in which a step that reads a step's result is still to come, or its undoing."""
    readers = Q()
    for other in plan.vertices.values():
        bound = {
            one.name
            for one in (*other.bindings, *other.guard_bindings)
            if one.source == "result"
        }
        if name in bound and other.loop is None:
            visits = StepRun.objects.filter(node=other.name, finished_at__isnull=False)
            readers |= ~Q(pk__in=visits.values("instance"))
        elif name in bound or name in {one.name for one in other.undo_bindings}:
            return live
    return live.filter(readers) if readers else live.none()


def events_that_wait() -> Iterator[Finding]:
    """Yield the findings about events that wait: undecided, parked, without a process, or for a person."""
    waiting = InboxEvent.objects.filter(UNDECIDED | KEPT).order_by()
    remedy = "Name it in aliases of the class that takes its place, or keep the class."
    for kind in sorted(set(waiting.values_list("type", flat=True).distinct())):
        rows = waiting.filter(type=kind)
        try:
            form = registry.event_class(kind)
        except UnknownEventType:
            yield Finding(
                f"events {kind}: the type is gone. Waiting: {rows.count()}", remedy
            )
            continue
        yield from _unreadable_messages("events", kind, form, rows)


def commands_that_wait() -> Iterator[Finding]:
    """Yield the findings about commands that are not carried out yet."""
    waiting = IssuedCommand.objects.filter(wake_at__isnull=False).order_by()
    remedy = "Keep its handler, or name the former name of the class in aliases."
    for kind, delivery in sorted(set(waiting.values_list("type", "delivery"))):
        rows = waiting.filter(type=kind, delivery=delivery)
        reacts = delivery == Delivery.REACTION
        find = registry.find_reaction if reacts else registry.command_handler
        if (handler := find(kind)) is None:
            yield Finding(
                f"commands {kind}: the handler is gone. Waiting: {rows.count()}", remedy
            )
            continue
        yield from _unreadable_messages("commands", kind, handler.message, rows)


def _unreadable_messages(
    noun: str, kind: str, form: type[Any], rows: QuerySet[Any]
) -> Iterator[Finding]:
    return unreadable_values(
        f"{noun} {kind}",
        newest(rows, "body"),
        lambda body: decode_message(form, body),
        "Give a new field a default, or convert the older form with from_older.",
    )


def _why_unreadable(read: Callable[[Any], object], value: object) -> str:
    """Why a stored value cannot be read, or ""; without what application code says, which may quote secrets."""
    try:
        read(value)
    except KeyboardInterrupt:
        raise
    except InvalidMessage as error:
        return str(error)
    except BaseException as error:  # noqa: BLE001  # the class's own checks may raise anything
        return f"{type(error).__name__} was raised"
    return ""


def newest(rows: QuerySet[Any], column: str) -> Iterable[Any]:
    """Return a column of the newest rows."""
    return rows.order_by("-pk").values_list(column, flat=True)[:MOST].iterator()


def unreadable_values(
    name: str, stored: Iterable[Any], read: Callable[[Any], object], remedy: str
) -> Iterator[Finding]:
    """Yield the findings about stored values that the running code cannot read, one for each reason."""
    reasons, number = Counter[str](), 0
    for value in stored:
        number += 1
        if reason := _why_unreadable(read, value):
            reasons[reason] += 1
    for reason, times in reasons.most_common(5):
        yield Finding(
            f"{name}: {times} of the newest {number} cannot be read: {reason}", remedy
        )
