"""The pages of bulk operations: the preview of a new one, the progress of one, and the list of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from monitoring.base.graphs import vertex_of
from monitoring.base.requests import parse_uuid
from monitoring.lists.bulk.selections import selected_failures, unchanged_arms
from monitoring.lists.events.event_search import EventFilters
from monitoring.lists.events.selected_events import LOOKED_AT, next_events
from monitoring.lists.failures.causes import open_of_cause
from monitoring.queries.counts import CAP, Capped, count_by, count_rows
from monitoring.queries.lists import KeyedPage, make_page, page_by_key
from monitoring.queries.processes import ProcessPlace, fetch_in_order, process_rows
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
"""Rows of a preview."""

PAGE = 50

NEWEST = 200
"""The number of newest operations that are searched for one on the same selection."""

GROUPS = 50
"""Groups by step and status that a preview shows."""

NAMES = 5
"""Definitions with excluded rows that a preview names."""

LIMITED = 10
"""The factor for the number of rows to look at when some definitions are excluded."""


STANDING = ("name", "status", "step")
"""The columns by which processes are grouped."""


@dataclass(frozen=True)
class RowGroup:
    """A group of matching rows: definition or type, status or verdict, step, and number."""

    name: str
    status: str
    step: str
    number: int


@dataclass(frozen=True)
class BulkPreview:
    """The preview of an operation: the rows that it would be done to.

    Args:
        rows: the first rows.
        standing: groups of the counted rows.
        number: the number of counted rows.
        exact: whether all rows were counted.
        at: the moment of the preview.
        refusals: why the operation is impossible now for some of the first rows, by key.
        doubtful: steps of the first rows that are not idempotent and may have had their effect.
    """

    rows: Sequence[Any]
    standing: Sequence[RowGroup]
    number: int
    exact: bool
    at: datetime
    refusals: Mapping[Any, str] = field(default_factory=dict)
    doubtful: Sequence[str] = ()
    limits: str = "*"
    """The definitions that it would be limited to, as `operations.limits` writes them."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """The number of counted rows of each definition for which the person lacks the permission."""
    forbidden: str = ""
    """Why the person may do it to no matching row, all of which are then shown; "" if they may to some."""

    @property
    def others(self) -> int:
        return self.number - len(self.rows)

    @property
    def left(self) -> int:
        """The number of excluded rows."""
        return sum(self.left_out.values())

    @property
    def left_names(self) -> str:
        """The names of the definitions with excluded rows."""
        names = sorted(filter(None, self.left_out))
        others = ["…"] if len(names) > NAMES else []
        return ", ".join([*names[:NAMES], *others])


def bulk_preview(
    operation: Operation,
    selection: str,
    about: Mapping[str, Any],
    at: datetime,
    user: Any,
) -> BulkPreview:
    """Return the preview of an operation that begins now.

    Args:
        operation: the action.
        selection: the kind of selection.
        about: the filters of the selection.
        at: the moment of the page.
        user: the person.
    """
    definitions = definitions_in_bulk(operation, user)
    whole = BulkSelection(operation, selection, about, at, user)
    if not definitions:  # without any permission the person still sees all matches
        return whole.preview()
    found = replace(whole, definitions=definitions).preview()
    said, left = limits(definitions), found.left_out
    if found.number or not found.exact or not left:
        return replace(found, limits=said)
    why = forbidden_in_bulk(operation, user, min(left)) or PermissionMissing().told
    return replace(whole.preview(), limits=said, left_out=left, forbidden=why)


@dataclass(frozen=True)
class BulkSelection:
    """The selection of an operation.

    Args:
        definitions: the names that it is limited to; None for no limit.
    """

    operation: Operation
    selection: str
    about: Mapping[str, Any]
    at: datetime
    user: Any
    definitions: frozenset[str] | None = None

    def preview(self) -> BulkPreview:
        if self.selection == "events":
            return self._preview_events()
        if self.selection == "failures":
            return self._preview_failures()
        return self._preview_list()

    def _is_in(self, name: str | None) -> bool:
        """Whether the limit includes a definition."""
        return self.definitions is None or name in self.definitions

    def _split(
        self, counted: Iterable[tuple[Any, ...]]
    ) -> tuple[list[RowGroup], dict[str, int]]:
        """Split groups into those within the limit, and the numbers excluded of each other definition."""
        kept, left = list[RowGroup](), Counter[str]()
        for one in (RowGroup(*row) for row in counted):
            if self._is_in(one.name):
                kept.append(one)
            else:
                left[one.name] += one.number
        return kept, dict(left)

    def _preview_list(self) -> BulkPreview:
        looks = SHOWN if self.definitions is None else SHOWN * LIMITED
        exact, parts, newest = True, list[QuerySet[Any]](), list[QuerySet[Any]]()
        for arm in unchanged_arms(self.about, self.at):
            part = arm.newest(CAP)
            exact = exact and part.edge is None
            parts.append(part.rows)
            newest.append(arm.newest(looks).rows)
        named = count_by(newest, "started_at", "id", "name", cap=looks)
        first = {
            ProcessPlace.from_sql(at, key)
            for at, key, name, _ in named
            if self._is_in(name)
        }
        kept, left = self._split(count_by(parts, *STANDING, cap=CAP))
        number = sum(one.number for one in kept)
        # Each part was counted up to CAP.
        exact = exact and number + sum(left.values()) < CAP
        shown = [place.pk for place in sorted(first, reverse=True)]
        return self._preview_processes(shown, kept, number, exact, left)

    def _preview_failures(self) -> BulkPreview:
        rows = selected_failures(self.about, self.at)
        keys = list(dict.fromkeys(rows.values_list("instance_id", flat=True)[:CAP]))
        exact = not count_rows(rows, CAP).at_least
        some = ProcessInstance.objects.filter(pk__in=rows.values("instance_id")[:CAP])
        kept, left = self._split(count_by(some, *STANDING, cap=CAP))
        if left:
            names = definitions_of_each(ProcessInstance, keys)
            keys = [key for key in keys if self._is_in(names.get(key))]
        return self._preview_processes(keys, kept, len(keys), exact, left)

    def _preview_processes(
        self,
        keys: Sequence[UUID],
        standing: Iterable[RowGroup],
        number: int,
        exact: bool,
        left: Mapping[str, int],
    ) -> BulkPreview:
        name = self.operation.name
        shown = fetch_in_order(process_rows("owner", data=False), keys[:SHOWN])
        why = {pk: said[name] for pk, said in refusals(shown, self.user).items()}
        return BulkPreview(
            shown,
            _largest_groups(standing),
            number,
            exact,
            self.at,
            refusals={pk: reason for pk, reason in why.items() if reason},
            doubtful=_doubtful(shown) if name == "retry" else (),
            left_out=left,
        )

    def _preview_events(self) -> BulkPreview:
        found, after = self._oldest_events()
        left = Counter[str]()
        if self.definitions is not None:
            names = definitions_of_each(InboxEvent, [one.pk for one in found])
            left.update(name for name in names.values() if not self._is_in(name))
            found = [one for one in found if self._is_in(names.get(one.pk))]
        counted = Counter((one.type, one.verdict) for one in found)
        standing = (RowGroup(*how, "", number) for how, number in counted.items())
        rows = InboxEvent.objects.select_related("process__definition").defer(
            "body", "process__data", "process__definition__graph"
        )
        shown = rows.filter(pk__in=[one.pk for one in found[:SHOWN]]).order_by("pk")
        return BulkPreview(
            list(shown),
            _largest_groups(standing),
            len(found),
            not after,
            self.at,
            left_out=left,
        )

    def _oldest_events(self) -> tuple[list[Any], str]:
        """Return the first matching events, and the key at which the search stopped; "" after all events."""
        filters, found, after = EventFilters.from_query(self.about), list[Any](), ""
        for _ in range(max(1, CAP // LOOKED_AT)):
            seen = next_events(filters, self.at, after)
            found += seen.rows
            after = seen.older
            if not after:
                break
        return found, after


def _largest_groups(standing: Iterable[RowGroup]) -> list[RowGroup]:
    return sorted(standing, key=lambda one: (-one.number, one.name, one.step))[:GROUPS]


def _doubtful(some: Iterable[ProcessInstance]) -> list[str]:
    """Return the failed steps of processes that are declared as not idempotent."""
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
    """Items of an operation, each with its process or event, if that still exists.

    Args:
        operation: the operation.
        verdict: the verdict of all items; "" for any.
    """

    operation: BulkOperation
    verdict: str

    @property
    def numbers(self) -> list[tuple[str, int]]:
        """The number of items by verdict; "" for all."""
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
    def settled_numbers(self) -> list[tuple[str, int]]:
        """The number of settled items by verdict, and always that of those that were done."""
        open_ones = ("", BulkVerdict.TRIED, BulkVerdict.WAITING)
        found = [(one, n) for one, n in self.numbers if one not in open_ones]
        return [(one, n) for one, n in found if n or one == BulkVerdict.DONE]

    @property
    def fewer(self) -> int:
        """The number of shown rows without an item: the row had changed, or its process had an item already."""
        one = self.operation
        frozen = one.frozen_at is not None and one.exact
        return max(0, one.shown - one.total) if frozen else 0


def operation_page(
    operation: BulkOperation, verdict: str = "", after: str = "", size: int = 0
) -> OperationPage:
    """Return a page of an operation's items, in the order of freezing."""
    rows = operation.items.order_by("pk")
    verdict = verdict if verdict in BulkVerdict.values else ""
    if verdict:
        rows = rows.filter(verdict=verdict)
    page = page_by_key(rows, size or PAGE, after, ascending=True)
    found: dict[Any, Any] = process_rows(data=False).in_bulk(
        [item.process_id for item in page.rows if item.process_id]
    )
    events: dict[Any, Any] = InboxEvent.objects.defer("body").in_bulk(
        [item.event_id for item in page.rows if item.event_id]
    )
    items: list[tuple[BulkItem, Any]] = [
        (item, found.get(item.process_id) or events.get(item.event_id))
        for item in page.rows
    ]
    return OperationPage(items, page.older, operation=operation, verdict=verdict)


def later_failures(operation: BulkOperation) -> Capped | None:
    """Count the later failures of an operation's cause in processes outside it."""
    if operation.selection != "failures" or operation.items_removed_at is not None:
        return None
    own = BulkItem.objects.filter(
        operation=operation, process_id=OuterRef("instance_id")
    )
    newest = open_of_cause(operation.about["cause"]).values("pk")[:CAP]
    rows = Incident.objects.filter(pk__in=newest, opened_at__gt=operation.shown_at)
    found = count_rows(rows.filter(~Exists(own)))
    return found or None


# All operations


def newest_operation(
    selection: str, about: Mapping[str, Any], *, going_on: bool = False
) -> BulkOperation | None:
    """Return the newest recent operation on the same selection; with `going_on` only one that has not ended."""
    newest = _operations(going_on=going_on)[:NEWEST]
    same = (one for one in newest if (one.selection, one.about) == (selection, about))
    return next(same, None)


def _operations(*, going_on: bool) -> QuerySet[BulkOperation]:
    """Return all operations or those that have not ended, newest first."""
    rows = BulkOperation.objects.open() if going_on else BulkOperation.objects.all()
    return rows.order_by("-pk")


def operations_page(
    before: str = "", *, going_on: bool = False, size: int = 0
) -> KeyedPage[BulkOperation]:
    """Return a page of all operations or of those that have not ended, newest first."""
    rows = _operations(going_on=going_on)
    if key := parse_uuid(before):
        rows = rows.filter(pk__lt=key)
    size = size or PAGE
    return make_page(list(rows[: size + 1]), size)
