"""Checks of a claimed visit before its attempt, and the policy by which it runs."""

from __future__ import annotations

from django.db import transaction

from orchestrator.definition.workflow.advance import is_starved
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change.workflows.following import arrivals_of, failed_branches
from orchestrator.engine.change.workflows.settling import (
    HELD_BACK,
    UNBEGUN,
    is_held,
)
from orchestrator.engine.sql.batch import send
from orchestrator.engine.sql.tables import instances, step_runs
from orchestrator.engine.storage.results import has_returned
from orchestrator.engine.work.leases import HOW_LOST
from orchestrator.exceptions import Interrupted, Permanent, TimedOut, WorkerDied
from orchestrator.models import (
    Lost,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.queue import calls_queue, holds_calls
from orchestrator.text import Text

MOST_STARTS = 50
"""The most attempts of a visit that ends its worker while that makes the graph, which has the visit's own limit."""


def policy_of(run: StepRun, vertex: Vertex | None) -> Policy:
    """Return the policy by which a visit runs."""
    if vertex is None:
        return Policy()
    return vertex.undo_policy if run.kind == StepKind.UNDO else vertex.step.policy


def other_queue(run: StepRun, vertex: Vertex) -> str:
    """Return the queue for calls of a visit whose function waits outside only since a deploy; "" for other visits.

    A visit whose function no longer waits outside runs on the queue that it has.
    """
    step = vertex.undo if run.kind == StepKind.UNDO else vertex.step
    calls = step is not None and step.is_call and not holds_calls(run.queue)
    return calls_queue(run.queue) if calls else ""


def check_step_attempts(run: StepRun, policy: Policy) -> None:
    """Check that a step may be tried once more.

    Raises:
        TimedOut, WorkerDied: the step has ended too many workers.
        Interrupted: the step must not be tried twice.
    """
    if not _ended_its_worker(run):
        return
    if not policy.idempotent and run.lost and not has_returned(run):
        raise Interrupted(_cut_off(run))
    if run.attempt == 1 or run.lost == Lost.CUT_OFF:  # which is not charged
        return
    before = run.attempt - 1
    late = run.lost == Lost.TIMED_OUT
    if run.attempt <= policy.attempts(TimedOut() if late else WorkerDied()):
        return
    if late:
        raise TimedOut("%(why)s, %(number)s times", HOW_LOST[Lost.TIMED_OUT], before)
    raise WorkerDied(
        "the worker died or was killed in each of %(number)s attempts", before
    )


def _ended_its_worker(run: StepRun) -> bool:
    """Whether the last attempt ended its worker. An attempt of a waiting visit only looks, so it counts only then."""
    return bool(run.lost) or run.status == StepStatus.WAITING


def hold_back(instance: ProcessInstance, run: StepRun, vertex: Vertex) -> bool:
    """Put an element of a map that has not begun to sleep while its map is held. Return whether it was.

    Args:
        instance: its process as the worker knows it.
        run: the claimed visit.
        vertex: its step.
    """
    tolerates = vertex.each is not None and vertex.each.tolerate
    if instance.status != Status.FAILED or run.kind != StepKind.ITEM or not tolerates:
        return False
    unbegun = {**UNBEGUN, "attempt": 1}  # its claim
    if any(getattr(run, name) != value for name, value in unbegun.items()):
        return False
    with transaction.atomic(durable=True):
        # A change that ends the hold wakes all steps that sleep by then.
        instances.lock(run.instance_id)
        held = is_held(run)
        if held:
            send(
                [step_runs.update({**HELD_BACK, "owner": "", "attempt": 0}, run.fence)]
            )
    return held


def check_branches(run: StepRun, vertex: Vertex) -> None:
    """Check that the step of a join still can have the branches that it needs.

    Raises:
        Permanent: the join lacks branches.
    """
    if run.kind == StepKind.UNDO or not is_starved(vertex, arrivals_of(run, over=True)):
        return
    others = Text("the others were")
    if failed := failed_branches(run):
        others = Text("%(number)s failed, and the others were", failed)
    raise Permanent(
        "the join at %(step)s needs %(needed)s of its %(all)s branches, but %(came)s came: %(others)s "
        "not taken",
        vertex.name,
        vertex.needed,
        vertex.ways_in,
        run.taken,
        others,
    )


def check_start(run: StepRun) -> None:
    """Check that a visit may be tried once more, before its graph is made, which has the visit's own limit.

    Raises:
        WorkerDied: the visit has ended too many workers.
    """
    if run.attempt > MOST_STARTS and _ended_its_worker(run):
        raise WorkerDied(
            "the worker died or was killed in attempt %(number)s, maybe while it made the graph",
            run.attempt - 1,
        )


def _cut_off(run: StepRun) -> str:
    """How the attempt before this one was lost; an attempt without a stored outcome was released uncharged."""
    if run.lost == Lost.CUT_OFF:
        return Text(
            "attempt %(number)s was cut off before its outcome was stored: whether %(step)s had its effect is not "
            "known. Retry it, or skip it with its result",
            run.attempt,
            run.node,
        )
    return Text(
        "the worker died in attempt %(number)s: whether %(step)s had its effect is not known. Retry it, or skip it "
        "with its result",
        run.attempt - 1,
        run.node,
    )


def has_room(run: StepRun, name: str, policy: Policy, mine: int = 0) -> bool:
    """Whether the concurrency limit of a step, over all processes of this name, lets the step run now.

    A worker runs one step at a time, so the other workers that hold one count; each claims before it asks. A worker of
    calls has several in flight: each call that another worker holds counts, and the `mine` that this worker has begun.
    """
    if policy.concurrency is None:
        return True
    held = StepRun.objects.filter(
        queue=run.queue,
        wake_at__isnull=False,
        node=run.node,
        kind=run.kind,
        status=StepStatus.RUNNING,
        instance__name=name,
    ).exclude(owner__in=["", run.owner])
    if holds_calls(run.queue):
        return held.count() + mine < policy.concurrency
    return held.values("owner").distinct().count() < policy.concurrency
