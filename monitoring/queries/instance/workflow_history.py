"""The history of a workflow's process: one row for each checkpoint, with the names of its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from monitoring.diagrams import words
from monitoring.queries.instance.checkpoints import Checkpoints, events_of
from monitoring.queries.instance.entries import Began, Entry, status_change
from monitoring.queries.instance.moment import ProcessMoment
from monitoring.queries.instance.step_states import shown_status
from orchestrator.collecting import group_by_key
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
"""The label of a step, by its name now and a revision."""

LOOKED_AT = 5_000
"""Most beginnings of steps that one page reads."""

NAMED = 8
"""Most steps that one row names; it counts the others."""


def workflow_transitions(moment: ProcessMoment, page: Checkpoints) -> list[Entry]:
    """The rows of a workflow's transitions."""
    instance, versions = moment.present, moment.versions
    runs, events = _runs(page.page), events_of(instance, page)
    began = _began(instance, page, versions.label_at)
    entries = [
        _entry(instance, checkpoint, earlier, runs, events, versions.label_at)
        for checkpoint, earlier in page.rows
    ]
    versions.noted(entries)
    for entry in entries:
        entry.began = began.get(entry.revision or 0, [])
        entry.resumable = instance.revision != entry.revision
    return _join_elements(entries)


def _runs(page: Iterable[Checkpoint]) -> dict[int, StepRun]:
    """The visits that caused a page's checkpoints."""
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
        event.type if event else _what(checkpoint, run, named),
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
    """The status of the visit at the checkpoint: settled by it, failed, or retrying."""
    if run.left == checkpoint.revision:
        return shown_status(run, instance)
    cause = checkpoint.moved_by
    if cause is None or not cause.kind.is_failure:
        return ""
    return "failed" if checkpoint.status == Status.FAILED else "retrying"


def _what(checkpoint: Checkpoint, run: StepRun | None, named: Named) -> str:
    if run is None:
        return checkpoint.said
    label = named(run.node, checkpoint.revision)
    return f"{label} #{run.item}" if run.item is not None else label


def _began(
    instance: ProcessInstance, page: Checkpoints, named: Named
) -> dict[int, list[Began]]:
    """The steps that began with a page's checkpoints, by revision."""
    if not page.page:
        return {}
    # An index has the time; a visit begins at the time of its transition.
    rows = instance.step_runs.filter(item=None, started_at__range=page.times)
    rows = rows.filter(entered__range=page.revisions)
    rows = rows.exclude(kind=StepKind.JOIN).exclude(status=StepStatus.NOT_TAKEN)
    begun = rows.order_by("pk").values_list("entered", "node", "kind")[:LOOKED_AT]
    found = group_by_key(
        (revision, Began(named(node, revision), kind == StepKind.UNDO))
        for revision, node, kind in begun
    )
    return {revision: _few(began) for revision, began in found.items()}


def _join_elements(entries: list[Entry]) -> list[Entry]:
    """Joins consecutive elements of one map that led to nothing else into one row."""
    kept: list[Entry] = []
    for entry in entries:
        last = kept[-1] if kept else None
        alike = (
            last is not None and entry.element_of and not (entry.began or entry.changes)
        )
        if (
            alike
            and last
            and last.element_of == entry.element_of
            and ((last.status, last.began, last.changes) == (entry.status, [], []))
        ):
            last.elements += 1
        else:
            kept.append(entry)
    return kept


def _few(began: list[Began]) -> list[Began]:
    more = len(began) - NAMED
    if more <= 0:
        return began
    return [*began[:NAMED], Began(words.more_text(more))]
