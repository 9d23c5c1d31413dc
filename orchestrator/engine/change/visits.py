"""New rows for the visits of a workflow's steps."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from orchestrator.definition.codec import encode_as
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.definition.workflow.rows import Each
from orchestrator.definition.workflow.steps import Step
from orchestrator.models import StepKind, StepRun, StepStatus
from orchestrator.queue import calls_of, plain

KINDS = {
    "step": StepKind.STEP,
    "wait": StepKind.WAIT,
    "ask": StepKind.ASK,
    "sleep": StepKind.SLEEP,
    "run": StepKind.RUN,
}


def queue_of(step: Step | None, queue: str) -> str:
    """The queue of a visit in which a step's function runs, given what another one of its process has."""
    if step is None:
        return queue
    queue = step.policy.queue or plain(queue)
    return calls_of(queue) if step.is_call else queue


def visit(
    vertex: Vertex, process: UUID, queue: str, revision: int, now: datetime
) -> StepRun:
    """A visit that is ready. What waits for something outside has no time at which it wakes, but for its deadline."""
    step = vertex.step
    row = _new(
        instance_id=process,
        node=vertex.name,
        kind=StepKind.MAP if vertex.each else KINDS[step.kind],
        status=StepStatus.READY,
        queue=queue_of(step, queue),
        wake_at=now,
        entered=revision,
        started_at=now,
    )
    if step.kind in ("wait", "ask", "sleep"):
        row.status = StepStatus.WAITING
        row.wake_at = now + step.deadline if step.deadline else None
    return row


def elements(row: Each, head: StepRun, result: Any) -> list[StepRun]:
    """The visits of a map, one for each element of a result; those outside the window wait. Sets the head's numbers.

    Raises:
        InvalidMessage: the result is no list, or an element cannot be stored.
    """
    values = encode_as(list, list(getattr(result, row.over) if row.over else result))
    window = row.window or len(values)
    head.status, head.wake_at, head.expected = StepStatus.WAITING, None, len(values)
    head.progress = {"done": 0, "failed": 0, "total": len(values)}
    return [
        _element(head, index, value, begins=index < window)
        for index, value in enumerate(values)
    ]


def _element(head: StepRun, index: int, value: Any, *, begins: bool) -> StepRun:
    return _new(
        instance_id=head.instance_id,
        node=head.node,
        kind=StepKind.ITEM,
        item=index,
        element=value,
        visit=head.visit,
        round=head.round,
        status=StepStatus.READY if begins else StepStatus.WAITING,
        queue=head.queue,
        wake_at=head.started_at if begins else None,
        entered=head.entered,
        started_at=head.started_at,
    )


def _new(**values: Any) -> StepRun:
    """A row with these values. Django takes values by their place four times as fast as it looks for defaults."""
    row = StepRun(*_defaults())
    for name, value in values.items():
        setattr(row, name, value)
    return row


@cache
def _defaults() -> tuple[Any, ...]:
    row = StepRun()
    return tuple(getattr(row, field.attname) for field in row._meta.concrete_fields)
