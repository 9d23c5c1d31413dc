"""Redoing one step whose stored result is bad: no further visits follow, but the step that reads the result goes on.

Steps that read the result while it was good keep theirs. The result of a waiting step is taken from its event again. If
the event is bad too, or a person gave the result, the step waits or asks again, and an incident names its reader.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.db.models import Max, QuerySet

from orchestrator.definition.codec import digest, encode
from orchestrator.engine.change import incidents
from orchestrator.engine.change.workflows import visits
from orchestrator.engine.change.workflows.workflow_change import (
    UNBLOCKED,
    WorkflowChange,
)
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.storage import inbox
from orchestrator.engine.storage.results import (
    GIVEN,
    is_intact,
    last_visit,
    returned_columns,
)
from orchestrator.exceptions import Permanent, ProcessionError
from orchestrator.models import (
    Blocked,
    InboxEvent,
    Incident,
    StepKind,
    StepRun,
    StepStatus,
    Verdict,
)
from orchestrator.text import Text, pack_text

log = logging.getLogger(__name__)

VisitKey = tuple[int, int | None, str]
"""The number of a visit, its element and its kind, as in one_run_per_visit."""

ROUNDS = 4
"""How often a step runs in all before an incident is opened."""

WAITING = (StepKind.WAIT, StepKind.ASK)
"""The kinds of visits that somebody outside settles."""

REMEDIES = {
    StepKind.WAIT: Text(
        "%(why)s. Its event is bad or gone too: have %(step)s sent another one, or skip it with its result; "
        "%(reader_step)s then goes on"
    ),
    StepKind.ASK: Text(
        "%(why)s. A person gave it: decide %(step)s again, or skip it with its result; %(reader_step)s then goes on"
    ),
}


def request_redo(change: WorkflowChange, reader: StepRun, step: str, why: str) -> None:
    """Redo a step, and let its reader wait for that; the reader's attempt is not charged.

    A reader that needs a person for it is shown as failed, and goes on by itself after the result is there.

    Raises:
        Permanent: the step has no result to redo, or was redone too often.
    """
    latest = last_results(change, step)
    if latest and latest[0].kind in WAITING:
        state = _given_again(change, reader, latest[0], why)
    else:
        begin_redo(change, step, why)
        state = {"status": StepStatus.WAITING, "wake_at": None, **_blocked_on(step)}
    values = {
        **state,
        **returned_columns(reader),
        "owner": "",
        "attempt": reader.attempt - 1,
        "error": why,
        "text": pack_text(why),
        "lost": "",
        "given_back": 0,
    }
    change.mark(step_runs.update(values, reader.fence))
    change.touch(reader, state["status"])


def _given_again(
    change: WorkflowChange, reader: StepRun, run: StepRun, why: str
) -> dict[str, Any]:
    """Get the result of a waiting or asking step anew. Return the columns of its reader in the meantime."""
    body = _of_event(run)
    if body is not None and run.round < ROUNDS:
        set_result(change, run, body, digest(body))
        change.to_wake.add(reader.queue)
        return {"status": StepStatus.READY, "wake_at": change.now}
    begin_redo(change, run.node, why, limit=None)
    _tell(change, reader, run, why)
    return {"status": StepStatus.FAILED, "wake_at": None, **_blocked_on(run.node)}


def set_result(change: WorkflowChange, run: StepRun, body: Any, checksum: str) -> None:
    """Replace the result of a settled visit by another round with the same status; the earlier round stays."""
    row = _again(
        change, run, _last_rounds(change, run.node, visit=run.visit, item=run.item)
    )
    row.status, row.wake_at, row.finished_at = StepStatus(run.status), None, change.now
    row.left, row.result, row.checksum = change.revision, body, checksum
    change.add(row)


def _blocked_on(step: str) -> dict[str, Any]:
    return {"blocked": Blocked.REDO, "blocked_on": step}


def _of_event(run: StepRun) -> Any:
    """The body of the event that a visit has taken, as JSON values; None if the event may be bad too."""
    if run.kind != StepKind.WAIT or is_intact(run):
        return None
    taken = InboxEvent.objects.filter(process=run.instance_id, verdict=Verdict.MOVED)
    event = taken.filter(revision=run.left).first()
    if event is None:
        return None
    try:
        body = encode(inbox.parse_event(event.type, event.body))
    except ProcessionError:
        return None
    # Of event, result and checksum the one that disagrees with the others is bad.
    return body if digest(body) == run.checksum or body == run.result else None


def _tell(change: WorkflowChange, reader: StepRun, run: StepRun, why: str) -> None:
    message = REMEDIES[StepKind(run.kind)].filled(why, run.node, reader.node)
    log.error("%s is blocked: %s", reader, message)
    change.instance.step = reader.node
    change.mark(
        incidents.resolve(Text("failed again"), change.now, step_run_id=reader.pk),
        *incidents.open_incident(
            Incident.Kind.CORRUPTED_DATA,
            message,
            change.now,
            instance=change.instance,
            step_run_id=reader.pk,
        ),
    )


def why_no_redo(change: WorkflowChange, step: str) -> str:
    """Return why an operator cannot redo a step now; "" if they can."""
    vertex = change.plan.vertices.get(step)
    if vertex is None:
        return Text("the running code has no step %(step)s", step)
    if vertex.step.kind == "sleep":
        return Text("%(step)s lets time pass: there is no result to redo", step)
    if vertex.step.kind in WAITING:
        return Text(
            "%(step)s is done by somebody else: resume from a checkpoint before it",
            step,
        )
    runs = change.instance.step_runs.filter(node=step).exclude(kind=StepKind.UNDO)
    if runs.filter(finished_at=None, redo=True).exists():
        return Text("%(step)s is being redone already", step)
    if runs.filter(finished_at=None).exists():
        return Text("%(step)s is not finished: retry or skip it", step)
    # For a map it is the row of the whole map, not those of its elements.
    if not runs.filter(status__in=GIVEN, item=None).exists():
        return Text("%(step)s has no result that could be redone", step)
    return ""


def begin_redo(
    change: WorkflowChange, step: str, why: str, *, limit: int | None = ROUNDS
) -> None:
    """Make another round of a step's last visit; for a map, of the elements with bad results, or else of all.

    Args:
        change: the change of the process.
        step: the step's name.
        why: the mistake in its result.
        limit: the most rounds; None for any number.

    Raises:
        Permanent: the step has no result to redo, or was redone too often.
    """
    latest = last_results(change, step)
    if not latest:
        raise Permanent(
            "%(step)s has no result that could be redone: %(why)s", step, why
        )
    if _open_redos(change, step).exists():
        return  # another reader has found it
    rounds = _last_rounds(change, step)
    for run in [run for run in latest if not is_intact(run)] or latest:
        _check_round(run, why, limit)
        change.add(_again(change, run, rounds))


def _check_round(run: StepRun, why: str, limit: int | None) -> None:
    if limit is not None and run.round >= limit:
        raise Permanent(
            "%(step)s was done %(number)s times and its result is still bad: %(why)s",
            run.node,
            run.round,
            why,
        )


def _open_redos(change: WorkflowChange, step: str) -> QuerySet[StepRun]:
    return change.instance.step_runs.filter(node=step, redo=True, finished_at=None)


def end_redo(change: WorkflowChange, run: StepRun) -> None:
    """Wake the readers that wait for a redo, if all of it is done."""
    if not _open_redos(change, run.node).exclude(pk=run.pk).exists():
        wake_readers(change, run.node)


def wake_readers(change: WorkflowChange, step: str) -> None:
    """Wake the readers that wait for a step's redo; they check the result themselves."""
    awake = {**UNBLOCKED, "status": StepStatus.READY, "wake_at": change.now}
    mine = {"instance_id": change.instance.pk, "finished_at": None}
    open_ones: dict[str, Any] = {**mine, **_blocked_on(step)}
    change.mark(step_runs.update(awake, open_ones, rows=None))
    for reader in StepRun.objects.filter(**open_ones).only("queue", "status"):
        change.to_wake.add(reader.queue)
        if reader.status == StepStatus.FAILED:
            by = Text("redone")
            change.mark(incidents.resolve(by, change.now, step_run_id=reader.pk))


def last_results(change: WorkflowChange, step: str) -> list[StepRun]:
    """Return the rows of a step's last visit with a result; for a map its elements."""
    runs = change.instance.step_runs.filter(node=step, status__in=GIVEN)
    runs = runs.exclude(kind=StepKind.UNDO).order_by("visit", "round")
    return last_visit(runs) or []


def _last_rounds(change: WorkflowChange, step: str, **only: Any) -> dict[VisitKey, int]:
    """The highest round of each visit of a step, cancelled ones included: no number is used twice."""
    runs = change.instance.step_runs.filter(node=step, **only).order_by()
    found = runs.values("visit", "item", "kind").annotate(last=Max("round"))
    return {(row["visit"], row["item"], row["kind"]): row["last"] for row in found}


def _again(
    change: WorkflowChange, run: StepRun, rounds: Mapping[VisitKey, int]
) -> StepRun:
    following = rounds[run.visit, run.item, run.kind] + 1
    begins = run.kind not in WAITING  # else the visit waits for somebody outside
    return visits.make_like(
        run, change.revision, change.now, begins=begins, round=following, redo=True
    )
