"""Whether a claimed visit may be tried now, and how."""

from __future__ import annotations

from orchestrator.definition.workflow.plan import Vertex
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.claims.leases import TOLD
from orchestrator.exceptions import Interrupted, TimedOut, WorkerDied
from orchestrator.models import Lost, StepKind, StepRun, StepStatus


def policy_of(run: StepRun, vertex: Vertex | None) -> Policy:
    """How a visit is run."""
    if vertex is None:
        return Policy()
    return vertex.undo_policy if run.kind == StepKind.UNDO else vertex.step.policy


def check_attempts(run: StepRun, policy: Policy) -> None:
    """Stops a step that ends its workers, or must not be tried twice.

    Raises:
        TimedOut, WorkerDied, Interrupted: it is not tried again.
    """
    if run.attempt == 1 or not run.lost:
        return
    before = run.attempt - 1
    if not policy.idempotent:
        raise Interrupted(
            f"the worker died in attempt {before}: whether {run.node} had its effect is not known. "
            "Retry it, or skip it with its result"
        )
    late = run.lost == Lost.TIMED_OUT
    if run.attempt <= policy.attempts(TimedOut() if late else WorkerDied()):
        return
    if late:
        raise TimedOut(f"{TOLD[Lost.TIMED_OUT]}, {before} times")
    raise WorkerDied(f"the worker died or was killed in each of {before} attempts")


def has_room(run: StepRun, name: str, policy: Policy) -> bool:
    """Whether the step may run now, if only so many of its runs, of all processes of this name, may go on at once.

    A worker runs one step at a time, so what counts is how many other workers hold one; each says so before it asks.
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
    return held.values("owner").distinct().count() < policy.concurrency
