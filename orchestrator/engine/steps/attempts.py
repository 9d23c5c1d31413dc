"""Whether a claimed visit may be tried now, and how."""

from __future__ import annotations

from orchestrator.definition.workflow.advance import starved
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change.following import arrivals_of, failed_branches
from orchestrator.engine.claims.leases import TOLD
from orchestrator.exceptions import Interrupted, Permanent, TimedOut, WorkerDied
from orchestrator.models import Lost, StepKind, StepRun, StepStatus
from orchestrator.queue import calls_queue, holds_calls
from orchestrator.text import Text

MOST_STARTS = 50
"""So many attempts has a visit that ended its worker, if the graph in which its own number stands is to be made."""


def policy_of(run: StepRun, vertex: Vertex | None) -> Policy:
    """How a visit is run."""
    if vertex is None:
        return Policy()
    return vertex.undo_policy if run.kind == StepKind.UNDO else vertex.step.policy


def other_queue(run: StepRun, vertex: Vertex) -> str:
    """The queue to which a visit belongs whose function waits outside in the running code and did not before.

    "" for one that is where it belongs. One that waits no more is run where it is.
    """
    step = vertex.undo if run.kind == StepKind.UNDO else vertex.step
    calls = step is not None and step.is_call and not holds_calls(run.queue)
    return calls_queue(run.queue) if calls else ""


def check_attempts(run: StepRun, policy: Policy) -> None:
    """Stops a step that ends its workers, or must not be tried twice.

    Raises:
        TimedOut, WorkerDied, Interrupted: it is not tried again.
    """
    if not _ended_its_worker(run):
        return
    if not policy.idempotent and run.lost:
        raise Interrupted(_cut_off(run))
    if run.attempt == 1 or run.lost == Lost.CUT_OFF:  # that one was given back
        return
    before = run.attempt - 1
    late = run.lost == Lost.TIMED_OUT
    if run.attempt <= policy.attempts(TimedOut() if late else WorkerDied()):
        return
    if late:
        raise TimedOut("%(why)s, %(number)s times", TOLD[Lost.TIMED_OUT], before)
    raise WorkerDied(
        "the worker died or was killed in each of %(number)s attempts", before
    )


def _ended_its_worker(run: StepRun) -> bool:
    """Whether the last attempt did. One that waits is only looked at, and no other attempt of that counts."""
    return bool(run.lost) or run.status == StepStatus.WAITING


def check_branches(run: StepRun, vertex: Vertex) -> None:
    """Stops the step of a join that can have what it needs no more.

    Raises:
        Permanent: it lacks branches.
    """
    if run.kind == StepKind.UNDO or not starved(vertex, arrivals_of(run, over=True)):
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
    """Stops a visit that ends its workers, though its graph, which tells how often it may, is still to be made.

    Raises:
        WorkerDied: it is not tried again.
    """
    if run.attempt > MOST_STARTS and _ended_its_worker(run):
        raise WorkerDied(
            "the worker died or was killed in attempt %(number)s, maybe while it made the graph",
            run.attempt - 1,
        )


def _cut_off(run: StepRun) -> str:
    """How the attempt before this one was lost; one whose outcome was not stored was given back."""
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
    """Whether the step may run now, if only so many of its runs, of all processes of this name, may go on at once.

    A worker runs one step at a time, so what counts is how many other workers hold one; each says so before it asks.
    Of steps that wait outside a worker has several in flight: all that others hold count, and `mine` that it has begun.
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
