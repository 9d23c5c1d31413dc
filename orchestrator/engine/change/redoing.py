"""Redoing one step whose stored result is bad: nothing follows from it anew, but whoever needed it goes on.

Steps that read the result while it was sound keep theirs. What an event gave is taken from the event again; where that
cannot be, or a person gave it, the step asks or waits again, and people are told who is held up by it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from django.db.models import Max

from orchestrator.definition.codec import digest, encode
from orchestrator.engine import inbox
from orchestrator.engine.change import incidents, visits
from orchestrator.engine.change.workflow import UNBLOCKED, WorkflowChange
from orchestrator.engine.storage.results import GIVEN, intact, last_visit
from orchestrator.engine.storage.tables import step_runs
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

Visit = tuple[int, int | None, str]
"""The number of a visit, its element and its kind, as in one_run_per_visit."""

ROUNDS = 4
"""How often a step is done in all before people are asked."""

WAITING = (StepKind.WAIT, StepKind.ASK)
"""What is done by somebody else."""

REMEDIES = {
    StepKind.WAIT: Text(
        "%(why)s. Its event is bad or gone too: have %(step)s sent another one, or skip it with its result; "
        "%(reader_step)s then goes on"
    ),
    StepKind.ASK: Text(
        "%(why)s. A person gave it: decide %(step)s again, or skip it with its result; %(reader_step)s then goes on"
    ),
}


def request(change: WorkflowChange, reader: StepRun, step: str, why: str) -> None:
    """Has a step redone and lets its reader wait for it; the reader's attempt is not charged.

    A reader that needs a person for it is shown as failed, and goes on by itself when the result is there.

    Raises:
        Permanent: the step has no result to redo, or was redone too often.
    """
    latest = last_results(change, step)
    if latest and latest[0].kind in WAITING:
        state = _given_again(change, reader, latest[0], why)
    else:
        begin(change, step, why)
        state = {"status": StepStatus.WAITING, "wake_at": None, **_blocked_on(step)}
    values = {
        **state,
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
    """Has what somebody else gave given again; returns how its reader stands meanwhile."""
    body = _of_event(run)
    if body is not None and run.round < ROUNDS:
        give(change, run, body, digest(body))
        change.rings.add(reader.queue)
        return {"status": StepStatus.READY, "wake_at": change.now}
    begin(change, run.node, why, limit=None)
    _tell(change, reader, run, why)
    return {"status": StepStatus.FAILED, "wake_at": None, **_blocked_on(run.node)}


def give(change: WorkflowChange, run: StepRun, body: Any, checksum: str) -> None:
    """Gives a settled visit another result: another round of it, settled as it was. The one before stays as it is."""
    row = _again(
        change, run, _last_rounds(change, run.node, visit=run.visit, item=run.item)
    )
    row.status, row.wake_at, row.finished_at = StepStatus(run.status), None, change.now
    row.left, row.result, row.checksum = change.revision, body, checksum
    change.add(row)


def _blocked_on(step: str) -> dict[str, Any]:
    return {"blocked": Blocked.REDO, "blocked_on": step}


def _of_event(run: StepRun) -> Any:
    """What the event gave that a visit has taken, as JSON values; None if the event cannot vouch for it."""
    if run.kind != StepKind.WAIT or intact(run):
        return None
    taken = InboxEvent.objects.filter(process=run.instance_id, verdict=Verdict.MOVED)
    event = taken.filter(revision=run.left).first()
    if event is None:
        return None
    try:
        body = encode(inbox.read(event.type, event.body))
    except ProcessionError:
        return None
    # The bad one of event, result and checksum is the one that disagrees with the others.
    return body if digest(body) == run.checksum or body == run.result else None


def _tell(change: WorkflowChange, reader: StepRun, run: StepRun, why: str) -> None:
    message = REMEDIES[StepKind(run.kind)].filled(why, run.node, reader.node)
    log.error("%s is held up: %s", reader, message)
    change.instance.step = reader.node
    change.mark(
        incidents.resolved(Text("failed again"), change.now, step_run_id=reader.pk),
        *incidents.opened(
            Incident.Kind.CORRUPTED_DATA,
            message,
            change.now,
            instance=change.instance,
            step_run_id=reader.pk,
        ),
    )


def why_not(change: WorkflowChange, step: str) -> str:
    """Why an operator cannot have a step redone now; "" if it can be."""
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
    # Of a map it is the row for all of it; its elements are not looked at.
    if not runs.filter(status__in=GIVEN, item=None).exists():
        return Text("%(step)s has no result that could be redone", step)
    return ""


def begin(
    change: WorkflowChange, step: str, why: str, *, limit: int | None = ROUNDS
) -> None:
    """Makes another round of a step's last visit; of a map, of the elements whose results are bad, else of all.

    Args:
        change: the change of the process.
        step: its name.
        why: what is wrong with its result.
        limit: how often it is done in all; None for as often as wanted.

    Raises:
        Permanent: the step has no result to redo, or was redone too often.
    """
    latest = last_results(change, step)
    if not latest:
        raise Permanent(
            "%(step)s has no result that could be redone: %(why)s", step, why
        )
    if change.instance.step_runs.filter(
        node=step, redo=True, finished_at=None
    ).exists():
        return  # another reader has found it
    rounds = _last_rounds(change, step)
    for run in [run for run in latest if not intact(run)] or latest:
        if limit is not None and run.round >= limit:
            raise Permanent(
                "%(step)s was done %(number)s times and its result is still bad: %(why)s",
                step,
                run.round,
                why,
            )
        change.add(_again(change, run, rounds))


def finished(change: WorkflowChange, run: StepRun) -> None:
    """Lets go on who waited for the redo, once all of it is done."""
    others = change.instance.step_runs.filter(
        node=run.node, redo=True, finished_at=None
    )
    if not others.exclude(pk=run.pk).exists():
        wake_readers(change, run.node)


def wake_readers(change: WorkflowChange, step: str) -> None:
    """Lets go on who waits for a step's redo; if there is still no sound result they find that out themselves."""
    awake = {**UNBLOCKED, "status": StepStatus.READY, "wake_at": change.now}
    mine = {"instance_id": change.instance.pk, "finished_at": None}
    open_ones: dict[str, Any] = {**mine, **_blocked_on(step)}
    change.mark(step_runs.update(awake, open_ones, rows=None))
    for reader in StepRun.objects.filter(**open_ones).only("queue", "status"):
        change.rings.add(reader.queue)
        if reader.status == StepStatus.FAILED:
            by = Text("redone")
            change.mark(incidents.resolved(by, change.now, step_run_id=reader.pk))


def last_results(change: WorkflowChange, step: str) -> list[StepRun]:
    """The last visit of a step that has a result; of a map, its elements."""
    runs = change.instance.step_runs.filter(node=step, status__in=GIVEN)
    runs = runs.exclude(kind=StepKind.UNDO).order_by("visit", "round")
    return last_visit(runs) or []


def _last_rounds(change: WorkflowChange, step: str, **only: Any) -> dict[Visit, int]:
    """The highest round of each visit of a step, also of those that were given up: no number is used twice."""
    runs = change.instance.step_runs.filter(node=step, **only).order_by()
    found = runs.values("visit", "item", "kind").annotate(last=Max("round"))
    return {(row["visit"], row["item"], row["kind"]): row["last"] for row in found}


def _again(
    change: WorkflowChange, run: StepRun, rounds: Mapping[Visit, int]
) -> StepRun:
    following = rounds[run.visit, run.item, run.kind] + 1
    begins = run.kind not in WAITING  # for somebody else
    return visits.like(
        run, change.revision, change.now, begins=begins, round=following, redo=True
    )
