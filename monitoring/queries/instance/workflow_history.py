"""The history of a workflow's instance: one row a checkpoint, in words about its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from monitoring.diagrams import words
from monitoring.queries.instance.entries import (
    Began,
    Entry,
    HistoryPage,
    status_change,
)
from monitoring.queries.instance.history import (
    Checkpoints,
    checkpoints_of,
    events_of,
)
from monitoring.queries.instance.step_states import shown_status
from monitoring.queries.instance.versions import versions_of
from orchestrator.collecting import gathered
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
"""A step as people read it, by the name under which it is stored and the revision."""

PAGE = 30
"""Checkpoints on one page."""

LOOKED_AT = 5_000
"""Beginnings of steps that one page looks at."""

NAMED = 8
"""Steps that one row names; of more it says how many there are."""


def workflow_history_of(
    instance: ProcessInstance, labels: Mapping[str, str], before: int | None = None
) -> HistoryPage:
    """One page of the history: its checkpoints, and between them what did not move it.

    Args:
        instance: the process.
        labels: its steps as people read them.
        before: only checkpoints of revisions below this one.
    """
    page = checkpoints_of(instance.checkpoints.defer("data"), before, PAGE)
    runs, events = _runs(page.page), events_of(instance, page)
    versions = versions_of(instance)
    named = partial(versions.label_at, labels=labels)
    began = _began(instance, page, named)
    entries = [
        _entry(instance, checkpoint, earlier, runs, events, named)
        for checkpoint, earlier in page.rows
    ]
    versions.noted(entries)
    for entry in entries:
        entry.began = began.get(entry.revision or 0, [])
        entry.resumable = instance.revision != entry.revision
    return page.with_others(instance, _together(entries))


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
    """How the visit stood then: settled by this checkpoint, failed, or tried again later."""
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
    # An index has the time; a visit is entered at that of its transition.
    rows = instance.step_runs.filter(item=None, started_at__range=page.times)
    rows = rows.filter(entered__range=page.revisions)
    rows = rows.exclude(kind=StepKind.JOIN).exclude(status=StepStatus.NOT_TAKEN)
    begun = rows.order_by("pk").values_list("entered", "node", "kind")[:LOOKED_AT]
    found = gathered(
        (revision, Began(named(node, revision), kind == StepKind.UNDO))
        for revision, node, kind in begun
    )
    return {revision: _few(began) for revision, began in found.items()}


def _together(entries: list[Entry]) -> list[Entry]:
    """Elements of one map that follow each other, and that nothing else came of, as one row."""
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
    return [*began[:NAMED], Began(words.more(more))]
