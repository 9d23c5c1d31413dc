"""Removing processes that ended long ago: whole trees, a few at a time, without long locks.

A tree is a process with its sub-processes. A run removes it if all its processes ended before the limit of their
definition, no work is left and no incident is open. A run skips locked trees; the next run finds them. Each set of
trees is one short transaction: lock, export, delete, audit. So a run may stop at any moment, and two may run at once.
A tree stays if the database refuses to delete it, because a table of the project refers to it; the others go.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, BinaryIO
from uuid import UUID, uuid4

from django.core.serializers.json import DjangoJSONEncoder
from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import Model, Q, QuerySet

from orchestrator.containers import group_by_key
from orchestrator.engine.sql.batch import chunks, database_now
from orchestrator.engine.sql.connection import passes
from orchestrator.engine.storage.pruning_items import prune_items
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    OutsideId,
    ProcessInstance,
    Repair,
    StepRun,
)
from orchestrator.retention import ALL_OTHERS

log = logging.getLogger(__name__)

FEWEST, MOST = 5, 250
"""The bounds on the number of trees in one transaction."""
LONG = 0.2
"""Seconds after which a transaction was too long; a quarter of them is short."""
AT_ONCE = 5_000
"""Processes that one statement names: SQLite takes 32,766 values, and a statement may name each process four times."""
REST = 4
"""A run pauses this many times as long as it has worked: the slower the database, the longer the pause."""

PARTS: Mapping[str, tuple[type[Model], str]] = {
    "visits": (StepRun, "instance_id"),
    "checkpoints": (Checkpoint, "instance_id"),
    "events": (InboxEvent, "process_id"),
    "commands": (IssuedCommand, "instance_id"),
    "incidents": (Incident, "instance_id"),
    "operator_actions": (OperatorAction, "instance_id"),
}
"""The rows that belong to a process, by their names in the export: the table, and its column with the process id."""


class Pruning:
    """One run.

    Args:
        keep: how long the ended processes of each definition are kept; ALL_OTHERS stands for those not named.
        actor: the person or program that runs it, for the audit.
        export: the file that gets each process as a line of JSON before the process is deleted.
        rest: how many times as long as it has worked the run pauses.
    """

    def __init__(
        self,
        keep: Mapping[str, timedelta],
        actor: str,
        export: BinaryIO | None = None,
        rest: float = REST,
    ) -> None:
        self.keep, self.actor, self.export, self.rest = keep, actor, export, rest
        self.key, self.now = uuid4(), database_now()
        self.pruned: Counter[str] = Counter()
        self.refused: dict[UUID, str] = {}
        """The roots of the trees that the database refused to delete, with its messages."""
        self.items = 0
        """The number of items of bulk operations that were removed."""
        self._size = FEWEST

    def due(self) -> QuerySet[ProcessInstance]:
        """The roots that ended long enough ago; their sub-processes may still keep them."""
        others = self.keep.get(ALL_OTHERS)
        wanted = Q(pk__in=())
        for name, time_ in self.keep.items():
            if name != ALL_OTHERS:
                wanted |= Q(name=name, finished_at__lt=self.now - time_)
        if others is not None:
            old = Q(finished_at__lt=self.now - others)
            wanted |= old & ~Q(name__in=list(self.keep))
        return ProcessInstance.objects.filter(wanted, parent=None)

    def run(self, tell: Callable[[int], None] = lambda trees: None) -> Counter[str]:
        """Remove all trees that may go. Return the number of removed processes of each definition.

        Args:
            tell: called with the number of trees in each set.

        Raises:
            DatabaseError: the database refused for now.
            OSError: the export cannot be written.
        """
        if (others := self.keep.get(ALL_OTHERS)) is not None:
            self.items = prune_items(self.now - others, self.rest)
        last = UUID(int=0)
        while True:
            ids = self.due().filter(pk__gt=last).order_by("pk").values_list("pk")
            roots = [pk for (pk,) in ids[: self._size]]
            if not roots:
                return self.pruned
            begun = time.monotonic()
            self._prune_all(roots)
            took = time.monotonic() - begun
            self._adapt_size(took)
            last = roots[-1]
            tell(len(roots))
            time.sleep(took * self.rest)

    def _adapt_size(self, took: float) -> None:
        """Take fewer trees after a long transaction, and more after a short one."""
        if took > LONG:
            self._size = max(FEWEST, self._size // 2)
        elif took < LONG / 4:
            self._size = min(MOST, self._size * 2)

    def _prune_all(self, roots: list[UUID]) -> None:
        """Remove some trees; halve the set if the database refuses to delete one of them."""
        end = self.export.seek(0, os.SEEK_END) if self.export else 0
        try:
            self._prune(roots)
        except DatabaseError as refusal:
            if passes(refusal):
                raise  # the deletion may have been committed nevertheless
            if self.export:
                self.export.truncate(end)
            if len(roots) == 1:
                said = str(refusal).strip()
                log.warning("process %s stays, with its tree: %s", roots[0], said)
                self.refused[roots[0]] = said
                return
            middle = len(roots) // 2
            self._prune_all(roots[:middle])
            self._prune_all(roots[middle:])

    def _prune(self, roots: list[UUID]) -> None:
        with transaction.atomic():
            trees = self._free_trees(roots)
            ids = [pk for tree in trees for pk in tree]
            if not ids:
                return
            if self.export is not None:
                for some in chunks(ids, AT_ONCE):
                    _write(self.export, some)
                self.export.flush()
                os.fsync(self.export.fileno())
            found = sum(map(_delete, chunks(ids, AT_ONCE)), self.pruned)
            OperatorAction.objects.update_or_create(
                key=self.key,
                defaults={
                    "action": "prune",
                    "actor_name": self.actor[:150],
                    "reason": f"kept for {self._kept()}",
                    "after": {"processes": dict(sorted(found.items()))},
                    "result": OperatorAction.Result.DONE,
                    "at": self.now,
                },
            )
        self.pruned = found

    def _kept(self) -> str:
        said = (f"{name} {time_.days:,} days" for name, time_ in self.keep.items())
        return ", ".join(sorted(said))

    def _free_trees(self, roots: list[UUID]) -> list[list[UUID]]:
        """The trees whose processes may all go, locked."""
        found = _locked(self.due().filter(pk__in=roots))
        root_of = {pk: pk for pk, _, _ in found}
        others = self.keep.get(ALL_OTHERS, timedelta.max)
        limits = {pk: self.now - self.keep.get(name, others) for pk, _, name in found}
        kept: set[UUID] = set()
        level = list(root_of)
        while level:
            parents, level = level, []
            for some in chunks(parents, AT_ONCE):
                children = ProcessInstance.objects.filter(parent__in=some)
                there = list(children.values_list("pk", "parent_id", "finished_at"))
                locked = {pk for pk, _, _ in _locked(children)}
                for pk, parent, ended in there:
                    root = root_of[pk] = root_of[parent]
                    level.append(pk)
                    if pk not in locked or ended is None or ended >= limits[root]:
                        kept.add(root)
        kept |= {root_of[pk] for pk in _unsettled(root_of)}
        trees = ((root, pk) for pk, root in root_of.items() if root not in kept)
        return list(group_by_key(trees).values())


def _write(export: BinaryIO, ids: Sequence[UUID]) -> None:
    """Write each process as a line."""
    parts: dict[str, dict[UUID, list[Any]]] = {}
    for part, (model, column) in PARTS.items():
        rows = model._default_manager.filter(**{f"{column}__in": ids})
        each = rows.order_by("pk").values()
        parts[part] = group_by_key((row[column], row) for row in each)
    whole = ProcessInstance.objects.filter(pk__in=ids).order_by("pk")
    versions = dict(whole.values_list("pk", "definition__version"))
    for process in whole.values():
        pk = process["id"]
        line: dict[str, Any] = {"process": {**process, "version": versions[pk]}}
        line |= {part: of_all[pk] for part, of_all in parts.items()}
        text = json.dumps(line, cls=DjangoJSONEncoder, ensure_ascii=False)
        export.write(f"{text}\n".encode())


def _locked(rows: QuerySet[ProcessInstance]) -> list[tuple[UUID, datetime | None, str]]:
    free = rows.select_for_update(skip_locked=True, of=("self",)).order_by("pk")
    return list(free.values_list("pk", "finished_at", "name"))


def _unsettled(ids: Iterable[UUID]) -> set[UUID]:
    """Return the processes that have unsettled work or an open incident."""
    ids = list(ids)
    open_ = (
        (
            IssuedCommand.objects.exclude(status__in=IssuedCommand.SETTLED),
            "instance_id",
        ),
        (InboxEvent.objects.filter(wake_at__isnull=False), "process_id"),
        (StepRun.objects.filter(wake_at__isnull=False), "instance_id"),
        (Incident.objects.open(), "instance_id"),
    )
    found: set[UUID] = set()
    for some in chunks(ids, AT_ONCE):
        for rows, column in open_:
            of_these = rows.filter(**{f"{column}__in": some})
            found.update(of_these.values_list(column, flat=True))
    return found


def _delete(ids: Sequence[UUID]) -> Counter[str]:
    """Delete processes with all their rows. Return the number of processes of each definition.

    The database checks the rows of other tables that refer to them at the end of the transaction.
    """
    processes = ProcessInstance.objects.filter(pk__in=ids)
    names = Counter(processes.values_list("name", flat=True))
    issued = IssuedCommand.objects.filter(instance__in=ids)
    causing = issued.filter(follow_ups__gt=0).values_list("pk", "follow_ups")
    caused = [f"{pk}:{place}" for pk, number in causing for place in range(number or 0)]
    for rows in _rows_of(ids):
        # Django would look for rows that refer to each row; all of those are here.
        rows._raw_delete("default")
    for some in chunks(caused, AT_ONCE):
        others = InboxEvent.objects.filter(source="command", event_id__in=some)
        others.update(caused_by=None)
    return names


def _rows_of(ids: Sequence[UUID]) -> Iterable[QuerySet[Any]]:
    """All rows of processes, in the order in which they are deleted."""
    visits = StepRun.objects.filter(instance__in=ids)
    # An event that has arrived since is kept: it finds no process, and becomes an incident.
    events = InboxEvent.objects.filter(process__in=ids, wake_at__isnull=True)
    issued = IssuedCommand.objects.filter(instance__in=ids)
    about = Q(instance__in=ids) | Q(event__in=events)
    return (
        Incident.objects.filter(about | Q(command__in=issued) | Q(step_run__in=visits)),
        OperatorAction.objects.filter(about),
        Repair.objects.filter(instance__in=ids),
        events,
        Checkpoint.objects.filter(instance__in=ids),
        OutsideId.objects.filter(instance__in=ids),
        visits,
        issued,
        ProcessInstance.objects.filter(pk__in=ids),
    )
