"""The pages of bulk operations: what one would be done to, how far it is, and which there have been."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet

from monitoring.queries.counts import CAP, Capped, capped, grouped
from monitoring.queries.failures import open_of_cause
from monitoring.queries.graphs import running_plan
from monitoring.queries.selections import (
    events_of,
    failures_of,
    unchanged,
)
from orchestrator.engine.operations import Operation, refusals
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

    @property
    def others(self) -> int:
        return self.number - len(self.rows)


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
    if selection == "events":
        return _of_events(about, at)
    if selection == "failures":
        return _of_failures(operation, about, at, user)
    return _of_list(operation, about, at, user)


def _of_list(
    operation: Operation, about: Mapping[str, Any], at: datetime, user: Any
) -> BulkPreview:
    keys: set[UUID] = set()
    exact, parts = True, list[QuerySet[Any]]()
    for arm in unchanged(about, at):
        rows, edge = arm.newest(CAP)
        exact = exact and edge is None
        parts.append(rows)
        first, _edge = arm.newest(SHOWN)
        keys.update(first.values_list("pk", flat=True))
    counted = grouped(parts, "name", "status", "step", cap=CAP)
    standing = _sorted(Standing(*row) for row in counted)
    number = sum(one.number for one in standing)
    exact = exact and number < CAP  # each part was counted to that bound
    shown = sorted(keys, reverse=True)[:SHOWN]
    return _of_processes(operation, shown, standing, number, exact, at, user)


def _of_failures(
    operation: Operation, about: Mapping[str, Any], at: datetime, user: Any
) -> BulkPreview:
    rows = failures_of(about, at)
    found = dict.fromkeys(rows.values_list("instance_id", flat=True)[:CAP])
    exact = not capped(rows, CAP).at_least
    keys = list(found)
    some = ProcessInstance.objects.filter(pk__in=rows.values("instance_id")[:CAP])
    counted = grouped(some, "name", "status", "step", cap=CAP)
    standing = _sorted(Standing(*row) for row in counted)
    return _of_processes(operation, keys[:SHOWN], standing, len(keys), exact, at, user)


def _of_processes(
    operation: Operation,
    keys: Sequence[UUID],
    standing: Sequence[Standing],
    number: int,
    exact: bool,
    at: datetime,
    user: Any,
) -> BulkPreview:
    rows = ProcessInstance.objects.select_related("definition", "owner")
    known = rows.defer("data", "definition__graph").in_bulk(keys)
    shown = [known[key] for key in keys if key in known]
    why = {pk: said[operation.name] for pk, said in refusals(shown, user).items()}
    found = {pk: reason for pk, reason in why.items() if reason}
    doubtful = _doubtful(shown) if operation.name == "retry" else ()
    return BulkPreview(shown, standing, number, exact, at, found, doubtful)


def _of_events(about: Mapping[str, Any], at: datetime) -> BulkPreview:
    rows = events_of(about, at)
    counted = grouped(rows, "type", "verdict", cap=CAP)
    standing = _sorted(Standing(name, how, "", n) for name, how, n in counted)
    number = sum(one.number for one in standing)
    shown = list(rows.select_related("process__definition")[:SHOWN])
    return BulkPreview(shown, standing, number, number < CAP, at)


def _sorted(standing: Iterable[Standing]) -> list[Standing]:
    return sorted(standing, key=lambda one: (-one.number, one.name, one.step))[:GROUPS]


def _doubtful(processes: Iterable[ProcessInstance]) -> list[str]:
    """The failed steps of processes that are declared as not to be repeated without a person."""
    by_key = {one.pk: one for one in processes}
    failed = StepRun.objects.filter(
        instance__in=list(by_key), finished_at=None, status=StepStatus.FAILED
    )
    found: set[str] = set()
    for pk, node in failed.values_list("instance_id", "node"):
        plan = running_plan(by_key[pk].definition)
        vertex = plan.vertices.get(node) if plan else None
        if vertex is not None and not vertex.step.policy.idempotent:
            found.add(node)
    return sorted(found)


# One operation


@dataclass(frozen=True)
class OperationPage:
    """An operation with a page of its items.

    Args:
        operation: itself.
        items: those of the page, each with its process or event, if that is still there.
        verdict: the verdict that they have; "" for any.
        older: the key of the last one, where there are more.
    """

    operation: BulkOperation
    items: list[tuple[BulkItem, Any]]
    verdict: str
    older: int | None

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

    @cached_property
    def newcomers(self) -> Capped | None:
        """Failures of the same cause in processes that are no part of it, since it was frozen."""
        return newcomers(self.operation)


def operation_page(
    operation: BulkOperation, verdict: str = "", after: str = ""
) -> OperationPage:
    """A page of an operation's items, in the order in which they were frozen."""
    rows = operation.items.order_by("pk")
    known = verdict in BulkVerdict.values
    if known:
        rows = rows.filter(verdict=verdict)
    if after.isdecimal():
        rows = rows.filter(pk__gt=int(after[:18]))
    found = list(rows[: PAGE + 1])
    shown = found[:PAGE]
    processes = ProcessInstance.objects.select_related("definition")
    known_processes = processes.defer("data", "definition__graph").in_bulk(
        [item.process_id for item in shown if item.process_id]
    )
    events = InboxEvent.objects.defer("body").in_bulk(
        [item.event_id for item in shown if item.event_id]
    )
    items: list[tuple[BulkItem, Any]] = [
        (
            item,
            known_processes.get(item.process_id)
            if item.process_id
            else events.get(item.event_id or 0),
        )
        for item in shown
    ]
    older = shown[-1].pk if len(found) > PAGE else None
    return OperationPage(operation, items, verdict if known else "", older)


def newcomers(operation: BulkOperation) -> Capped | None:
    """How many failures of the group that an operation was begun on have come since, of processes not in it."""
    if operation.selection != "failures":
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


@dataclass(frozen=True)
class OperationsPage:
    """Operations, newest first, and the key of the next page."""

    rows: list[BulkOperation]
    older: str


def operations_page(before: str = "", *, going_on: bool = False) -> OperationsPage:
    """A page of the operations that there have been, or of those that go on or are halted."""
    rows = BulkOperation.objects.open() if going_on else BulkOperation.objects.all()
    rows = rows.order_by("-pk")
    with suppress(ValueError):
        rows = rows.filter(pk__lt=UUID(before)) if before else rows
    found = list(rows[: PAGE + 1])
    older = str(found[PAGE - 1].pk) if len(found) > PAGE else ""
    return OperationsPage(found[:PAGE], older)


def number_going_on() -> Capped:
    """How many operations go on, or are halted."""
    return capped(BulkOperation.objects.open(), LATELY)
