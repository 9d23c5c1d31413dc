"""The pages of bulk operations: what one would be done to, how far it is, and which there have been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from monitoring.queries.causes import open_of_cause
from monitoring.queries.counts import CAP, Capped, capped, grouped, uuid_of
from monitoring.queries.event_search import EventFilters
from monitoring.queries.graphs import vertex_of
from monitoring.queries.kept_events import LOOKED_AT, KeptEvent, look
from monitoring.queries.lists import KeyedPage, page_by_key, page_of, uuid_in
from monitoring.queries.processes import in_order, processes
from monitoring.queries.selections import failures_of, unchanged
from orchestrator.engine.operations import (
    Operation,
    definitions_in_bulk,
    definitions_of_each,
    forbidden_in_bulk,
    limits,
    refusals,
)
from orchestrator.exceptions import PermissionMissing
from orchestrator.models import (
    BulkItem,
    BulkOperation,
    BulkVerdict,
    InboxEvent,
    Incident,
    ProcessInstance,
    StepRun,
    StepStatus,
)

SHOWN = 20
"""Rows that are shown before an operation is begun."""

PAGE = 50

LATELY = 200
"""Operations among which those on one group of failures are looked for."""

GROUPS = 50
"""Kinds of rows, by step and status, that are told apart."""

NAMES = 5
"""Definitions that are named of which something is left out."""

LIMITED = 10
"""So many times as many rows are looked at for the first ones, where those of some definitions are left out."""


STANDING = ("name", "status", "step")
"""The columns that say where a process stands."""


@dataclass(frozen=True)
class Standing:
    """Where some of what matches stands: of which definition or type, at which step, how, and how many."""

    name: str
    status: str
    step: str
    number: int


@dataclass(frozen=True)
class BulkPreview:
    """What an operation would be done to.

    Args:
        rows: the first of it.
        standing: where all of it stands, as far as it was counted.
        number: how many were counted.
        exact: whether these are all.
        at: as of when.
        refusals: why it cannot be done now to those of the first that it cannot, by key.
        doubtful: steps of the first that may have had their effect, and may not be repeated without thought.
    """

    rows: Sequence[Any]
    standing: Sequence[Standing]
    number: int
    exact: bool
    at: datetime
    refusals: Mapping[Any, str] = field(default_factory=dict)
    doubtful: Sequence[str] = ()
    limits: str = "*"
    """The definitions that it would be limited to, as `operations.limits` says them."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many match of each definition for which the person may not do it, as far as they were counted."""
    forbidden: str = ""
    """Why the person may do it to nothing of what matches, all of which is shown then; "" where they may to some."""

    @property
    def others(self) -> int:
        return self.number - len(self.rows)

    @property
    def left(self) -> int:
        """How many of those that match are left out."""
        return sum(self.left_out.values())

    @property
    def left_names(self) -> str:
        """Of which definitions those are."""
        names = sorted(filter(None, self.left_out))
        others = ["…"] if len(names) > NAMES else []
        return ", ".join([*names[:NAMES], *others])


def preview(
    operation: Operation,
    selection: str,
    about: Mapping[str, Any],
    at: datetime,
    user: Any,
) -> BulkPreview:
    """What the operation would be done to if it were begun now.

    Args:
        operation: the action.
        selection: the name of the kind of selection.
        about: what is selected.
        at: the moment of the page.
        user: who would do it.
    """
    definitions = definitions_in_bulk(operation, user)
    whole = Selected(operation, selection, about, at, user)
    if not definitions:  # who may do it nowhere sees what it would be on
        return whole.preview()
    found = replace(whole, definitions=definitions).preview()
    said, left = limits(definitions), found.left_out
    if found.number or not found.exact or not left:
        return replace(found, limits=said)
    why = forbidden_in_bulk(operation, user, min(left)) or PermissionMissing().told
    return replace(whole.preview(), limits=said, left_out=left, forbidden=why)


@dataclass(frozen=True)
class Selected:
    """What is selected for an operation.

    Args:
        definitions: the names of those that it is limited to; None for no limit.
    """

    operation: Operation
    selection: str
    about: Mapping[str, Any]
    at: datetime
    user: Any
    definitions: frozenset[str] | None = None

    def preview(self) -> BulkPreview:
        if self.selection == "events":
            return self._of_events()
        return self._of_failures() if self.selection == "failures" else self._of_list()

    def _is_in(self, name: str | None) -> bool:
        """Whether what is of this definition is part of it."""
        return self.definitions is None or name in self.definitions

    def _parted(
        self, counted: Iterable[tuple[Any, ...]]
    ) -> tuple[list[Standing], dict[str, int]]:
        """What is of the definitions that it is limited to, and how many are left out of each other one."""
        kept, left = list[Standing](), Counter[str]()
        for one in (Standing(*row) for row in counted):
            if self._is_in(one.name):
                kept.append(one)
            else:
                left[one.name] += one.number
        return kept, dict(left)

    def _of_list(self) -> BulkPreview:
        looks = SHOWN if self.definitions is None else SHOWN * LIMITED
        exact, parts, newest = True, list[QuerySet[Any]](), list[QuerySet[Any]]()
        for arm in unchanged(self.about, self.at):
            rows, edge = arm.newest(CAP)
            exact = exact and edge is None
            parts.append(rows)
            newest.append(arm.newest(looks)[0])
        named = grouped(newest, "id", "name", cap=looks)
        first = [uuid_of(stored) for stored, name, _ in named if self._is_in(name)]
        kept, left = self._parted(grouped(parts, *STANDING, cap=CAP))
        number = sum(one.number for one in kept)
        # Each part was counted to that bound.
        exact = exact and number + sum(left.values()) < CAP
        shown = sorted(set(first), reverse=True)
        return self._of_processes(shown, kept, number, exact, left)

    def _of_failures(self) -> BulkPreview:
        rows = failures_of(self.about, self.at)
        keys = list(dict.fromkeys(rows.values_list("instance_id", flat=True)[:CAP]))
        exact = not capped(rows, CAP).at_least
        some = ProcessInstance.objects.filter(pk__in=rows.values("instance_id")[:CAP])
        kept, left = self._parted(grouped(some, *STANDING, cap=CAP))
        if left:
            names = definitions_of_each(ProcessInstance, keys)
            keys = [key for key in keys if self._is_in(names.get(key))]
        return self._of_processes(keys, kept, len(keys), exact, left)

    def _of_processes(
        self,
        keys: Sequence[UUID],
        standing: Iterable[Standing],
        number: int,
        exact: bool,
        left: Mapping[str, int],
    ) -> BulkPreview:
        name = self.operation.name
        shown = in_order(processes("owner", data=False), keys[:SHOWN])
        why = {pk: said[name] for pk, said in refusals(shown, self.user).items()}
        return BulkPreview(
            shown,
            _sorted(standing),
            number,
            exact,
            self.at,
            refusals={pk: reason for pk, reason in why.items() if reason},
            doubtful=_doubtful(shown) if name == "retry" else (),
            left_out=left,
        )

    def _of_events(self) -> BulkPreview:
        filters, after = EventFilters.from_query(self.about), 0
        found = list[KeptEvent]()
        for _ in range(max(1, CAP // LOOKED_AT)):
            seen = look(filters, self.at, after)
            found += seen.found
            if seen.after is None:
                break
            after = seen.after
        left = Counter[str]()
        if self.definitions is not None:
            names = definitions_of_each(InboxEvent, [one.pk for one in found])
            left.update(name for name in names.values() if not self._is_in(name))
            found = [one for one in found if self._is_in(names.get(one.pk))]
        counted = Counter((one.type, one.verdict) for one in found)
        standing = (Standing(*how, "", number) for how, number in counted.items())
        rows = InboxEvent.objects.select_related("process__definition").defer(
            "body", "process__data", "process__definition__graph"
        )
        shown = rows.filter(pk__in=[one.pk for one in found[:SHOWN]]).order_by("pk")
        return BulkPreview(
            list(shown),
            _sorted(standing),
            len(found),
            seen.after is None,
            self.at,
            left_out=left,
        )


def _sorted(standing: Iterable[Standing]) -> list[Standing]:
    return sorted(standing, key=lambda one: (-one.number, one.name, one.step))[:GROUPS]


def _doubtful(some: Iterable[ProcessInstance]) -> list[str]:
    """The failed steps of processes that are declared as not to be repeated without a person."""
    by_key = {one.pk: one for one in some}
    failed = StepRun.objects.filter(
        instance__in=list(by_key), finished_at=None, status=StepStatus.FAILED
    )
    found: set[str] = set()
    for pk, node in failed.values_list("instance_id", "node"):
        vertex = vertex_of(by_key[pk].definition, node)
        if vertex is not None and not vertex.step.policy.idempotent:
            found.add(node)
    return sorted(found)


# One operation


@dataclass(frozen=True, kw_only=True)
class OperationPage(KeyedPage[tuple[BulkItem, Any]]):
    """Items of an operation, each with its process or event, if that is still there.

    Args:
        operation: itself.
        verdict: the verdict that they have; "" for any.
    """

    operation: BulkOperation
    verdict: str

    @property
    def numbers(self) -> list[tuple[str, int]]:
        """The number of items of each verdict, and of all under ""."""
        one = self.operation
        return [
            ("", one.total),
            (BulkVerdict.DONE, one.done),
            (BulkVerdict.FAILED, one.failed),
            (BulkVerdict.TRIED, one.tried),
            (BulkVerdict.WAITING, one.waiting),
            (BulkVerdict.SKIPPED, one.skipped),
            (BulkVerdict.REFUSED, one.refused),
        ]

    @property
    def fewer(self) -> int:
        """How many of those that were shown are not frozen: they had changed, or were failures of one process."""
        one = self.operation
        frozen = one.frozen_at is not None and one.exact
        return max(0, one.shown - one.total) if frozen else 0

    @property
    def limited_to(self) -> str:
        """The definitions that it is limited to, named; "" for no limit."""
        return ", ".join(self.operation.definitions or ())

    @cached_property
    def newcomers(self) -> Capped | None:
        """Failures of the same cause in processes that are no part of it, since it was frozen."""
        return newcomers(self.operation)


def operation_page(
    operation: BulkOperation, verdict: str = "", after: str = "", size: int = 0
) -> OperationPage:
    """A page of an operation's items, in the order in which they were frozen."""
    rows = operation.items.order_by("pk")
    known = verdict in BulkVerdict.values
    if known:
        rows = rows.filter(verdict=verdict)
    page = page_by_key(rows, size or PAGE, after, ascending=True)
    known_processes = processes(data=False).in_bulk(
        [item.process_id for item in page.rows if item.process_id]
    )
    events = InboxEvent.objects.defer("body").in_bulk(
        [item.event_id for item in page.rows if item.event_id]
    )
    items = [
        (
            item,
            known_processes.get(item.process_id)
            if item.process_id
            else events.get(item.event_id or 0),
        )
        for item in page.rows
    ]
    verdict = verdict if known else ""
    return OperationPage(items, page.older, operation=operation, verdict=verdict)


def newcomers(operation: BulkOperation) -> Capped | None:
    """How many failures of the group that an operation was begun on have come since, of processes not in it."""
    if operation.selection != "failures" or operation.items_removed_at is not None:
        return None
    own = BulkItem.objects.filter(
        operation=operation, process_id=OuterRef("instance_id")
    )
    rows = failures_since(operation.about["cause"], operation.shown_at)
    found = capped(rows.filter(~Exists(own)))
    return found or None


def failures_since(cause: str, since: datetime) -> QuerySet[Incident]:
    """The open failures of a cause that came after a moment, among the newest."""
    newest = open_of_cause(cause).values("pk")[:CAP]
    return Incident.objects.filter(pk__in=newest, opened_at__gt=since)


def on_cause(cause: str) -> BulkOperation | None:
    """The newest operation on the failures of a cause, if one was begun lately."""
    lately = BulkOperation.objects.order_by("-pk")[:LATELY]
    of_cause = (
        one
        for one in lately
        if one.selection == "failures" and one.about.get("cause") == cause
    )
    return next(of_cause, None)


def going_on_for(selection: str, about: Mapping[str, Any]) -> BulkOperation | None:
    """The newest operation on the same that has not ended."""
    lately = BulkOperation.objects.open().order_by("-pk")[:LATELY]
    same = (one for one in lately if (one.selection, one.about) == (selection, about))
    return next(same, None)


# All operations


def operations_page(
    before: str = "", *, going_on: bool = False, size: int = 0
) -> KeyedPage[BulkOperation]:
    """A page of the operations that there have been, newest first, or of those that go on or are halted."""
    rows = BulkOperation.objects.open() if going_on else BulkOperation.objects.all()
    rows = rows.order_by("-pk")
    if key := uuid_in(before):
        rows = rows.filter(pk__lt=key)
    size = size or PAGE
    return page_of(list(rows[: size + 1]), size)
