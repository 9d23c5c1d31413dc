"""The history of a workflow: a row for each checkpoint, with the names of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

from monitoring.diagrams import words
from monitoring.process.history.checkpoints import Checkpoints, causing_events
from monitoring.process.revision.entries import BegunStep, Entry, status_change
from monitoring.process.revision.moment import ProcessMoment
from monitoring.process.steps.step_states import shown_status
from orchestrator.containers import group_by_key
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)

Named = Callable[[str, int], str]
"""A function for the label of a step, by its name now and a revision."""

LOOKED_AT = 5_000
"""The maximum number of beginnings of steps that one page reads."""

NAMED = 8
"""The number of steps that one row names; it counts the others."""


JOINED = attrgetter("element_of", "status", "began", "changes")
"""The values that are equal for consecutive elements of a map in one row."""


def workflow_transitions(moment: ProcessMoment, page: Checkpoints) -> list[Entry]:
    """Return the rows of a workflow's transitions."""
    instance, versions = moment.present, moment.versions
    runs, events = _runs(page.page), causing_events(instance, page)
    began = _begun_steps(instance, page, versions.label_at)
    entries = [
        _entry(instance, checkpoint, earlier, runs, events, versions.label_at)
        for checkpoint, earlier in page.rows
    ]
    versions.add_changes(entries)
    for entry in entries:
        entry.began = began.get(entry.revision or 0, [])
        entry.resumable = instance.revision != entry.revision
    return _join_elements(entries)


def _runs(page: Iterable[Checkpoint]) -> dict[int, StepRun]:
    """Return the visits that caused a page's checkpoints."""
    keys = [key for checkpoint in page if (key := checkpoint.step_run)]
    fields = ("node", "status", "item", "visit", "kind", "left", "finished_at")
    return StepRun.objects.only(*fields).in_bulk(keys)


def _entry(
    instance: ProcessInstance,
    checkpoint: Checkpoint,
    earlier: Checkpoint | None,
    runs: Mapping[int, StepRun],
    events: Mapping[int, InboxEvent],
    named: Named,
) -> Entry:
    run = runs.get(checkpoint.step_run or 0)
    event = events.get(checkpoint.revision)
    return Entry(
        checkpoint.at,
        event.type if event else _entry_title(checkpoint, run, named),
        source=event.source if event else "",
        revision=checkpoint.revision,
        changes=status_change(earlier.status, checkpoint.status) if earlier else [],
        event=event,
        status=_status(instance, checkpoint, run) if run and not event else "",
        element_of=named(run.node, checkpoint.revision)
        if run and run.item is not None
        else "",
    )


def _status(instance: ProcessInstance, checkpoint: Checkpoint, run: StepRun) -> str:
    """Return the status of the visit at the checkpoint: settled by it, failed, or retrying."""
    if run.left == checkpoint.revision:
        return shown_status(run, instance)
    cause = checkpoint.moved_by
    if cause is None or not cause.kind.is_failure:
        return ""
    return "failed" if checkpoint.status == Status.FAILED else "retrying"


def _entry_title(checkpoint: Checkpoint, run: StepRun | None, named: Named) -> str:
    if run is None:
        return checkpoint.said
    label = named(run.node, checkpoint.revision)
    return f"{label} #{run.item}" if run.item is not None else label


def _begun_steps(
    instance: ProcessInstance, page: Checkpoints, named: Named
) -> dict[int, list[BegunStep]]:
    """Return the steps that began with a page's checkpoints, by revision."""
    if not page.page:
        return {}
    # An index has the time; a visit begins at the time of its transition.
    rows = instance.step_runs.filter(item=None, started_at__range=page.times)
    rows = rows.filter(entered__range=page.revisions)
    rows = rows.exclude(kind=StepKind.JOIN).exclude(status=StepStatus.NOT_TAKEN)
    begun = rows.order_by("pk").values_list("entered", "node", "kind")[:LOOKED_AT]
    found = group_by_key(
        (revision, BegunStep(named(node, revision), kind == StepKind.UNDO))
        for revision, node, kind in begun
    )
    return {revision: _first_steps(began) for revision, began in found.items()}


def _join_elements(entries: list[Entry]) -> list[Entry]:
    """Join consecutive elements of one map without other consequences into one row."""
    kept: list[Entry] = []
    for entry in entries:
        last = kept[-1] if kept else None
        plain = entry.element_of and not (entry.began or entry.changes)
        if plain and last and JOINED(last) == JOINED(entry):
            last.elements += 1
        else:
            kept.append(entry)
    return kept


def _first_steps(began: list[BegunStep]) -> list[BegunStep]:
    more = len(began) - NAMED
    if more <= 0:
        return began
    return [*began[:NAMED], BegunStep(words.more_text(more))]
