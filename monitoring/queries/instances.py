"""The list of instances: filters that live in the URL, pages by key, rows that stay where they are."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import CharField, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Cast, Now
from django.http import QueryDict

from monitoring.queries.counts import MANY, capped
from monitoring.queries.graphs import named_step
from orchestrator.models import (
    Definition,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.models.process_instance import ENDED, ProcessInstanceQuerySet

PAGE = 50
NEW = 100

LIVE = tuple(status for status in Status if status not in ENDED)

LOOKED_AT = 1_000
"""Rows that one page looks at for what no index finds; the page after it goes on from there."""


LATE = timedelta(minutes=1)
"""A deadline that is carried out later than this needs a person, who sees why."""

STILL = timedelta(minutes=1)
"""So long nothing has happened, and nothing is about to, when a process counts as stalled."""


NOT_BY_INDEX = Cast("pk", CharField()).desc()
"""The order of the keys, in words that no index has."""


@dataclass(frozen=True)
class Filters:
    """What the list is narrowed to; every field but the last two is a parameter of the URL.

    Args:
        owner: a user's name, "me" or "nobody".
        reader: who "me" is.
        started_since: when they started at the earliest; no parameter of the URL either.
    """

    definition: str = ""
    version: str = ""
    status: str = ""
    step: str = ""
    escalated: str = ""
    overdue: str = ""
    stalled: str = ""
    owner: str = ""
    q: str = ""
    reader: Any = None
    started_since: datetime | None = None

    @classmethod
    def from_query(
        cls, query: QueryDict, reader: Any = None, **fixed: str
    ) -> "Filters":
        given: dict[str, Any] = {
            name: _clean(query.get(name, "")) for name in cls._names()
        }
        return cls(**(given | fixed), reader=reader)

    @classmethod
    def _names(cls) -> list[str]:
        names = [named.name for named in fields(cls)]
        return [name for name in names if name not in ("reader", "started_since")]

    def by_name(self) -> "Filters":
        """The same with the step by its own name, where it was given as people read it."""
        if not self.step:
            return self
        return replace(self, step=named_step(self.definition, self.step))

    def applied(self) -> ProcessInstanceQuerySet:
        """The instances that match, all of them."""
        rows = self._narrowed().filter(self._looked_for())
        if self.status == "live":
            rows = rows.live()
        return rows.filter(self._in_step()) if self.step else rows

    def arms(self) -> list["Arm"]:
        """The same as parts that an index finds from the newest to the oldest."""
        looked_for, order = self._looked_for(), _newest_first(self.definition)
        some = self
        if self.q:
            named = ProcessInstance.objects.filter(self._found())
            if capped(named, MANY).at_least:
                looked_for, some = looked_for & self._found(), replace(self, q="")
            else:
                order = (NOT_BY_INDEX,)
        arms = [Arm(part, order, looked_for) for part in some._parts()]
        return [step for arm in arms for step in self._in(arm)] if self.step else arms

    def _in(self, arm: "Arm") -> list["Arm"]:
        """Those of an arm that are in the step now, and those that ended in it."""
        ended = Q(finished_at__isnull=False, step=self.step)
        return [
            replace(arm, visits=self._visits()),
            replace(arm, looked_for=arm.looked_for & ended),
        ]

    def _parts(self) -> list[ProcessInstanceQuerySet]:
        """The rows that indexes find; of all that go on by status, as the index has them."""
        rows = self._narrowed()
        if self.status != "live":
            return [rows]
        return [rows.live().filter(status=status) for status in LIVE]

    def _narrowed(self) -> ProcessInstanceQuerySet:
        """What indexes find."""
        rows = ProcessInstance.objects.all()
        if self.definition:
            # A range of one, or PostgreSQL would look for them among all, newest first, and not by the index.
            rows = rows.filter(name__range=(self.definition, self.definition))
        if self.status == Status.CANCELLED:
            rows = rows.filter(status=Status.CANCELLED)
        elif self.status in LIVE:
            rows = rows.live().filter(status=self.status)
        if self.escalated:
            rows = rows.escalated()
        if self.overdue:
            late = overdue_visits().order_by("wake_at").values("instance")[:MANY]
            rows = rows.live().filter(pk__in=late)
        if self.stalled:
            rows = rows.filter(pk__in=[process.pk for process in stalled_processes()])
        if self.owner:
            rows = rows.filter(self._owned())
        return rows.filter(self._found()) if self.q else rows

    def _looked_for(self) -> Q:
        """What is true of most, or of few that must be looked for."""
        found = Q()
        if self.version.isdecimal():
            named = {"name": self.definition} if self.definition else {}
            found &= Q(definition__in=_ids(version=int(self.version[:9]), **named))
        if self.status == Status.COMPLETED:
            found &= Q(status=Status.COMPLETED)
        if self.started_since is not None:
            found &= Q(started_at__gte=self.started_since)
        return found

    def _visits(self) -> QuerySet[StepRun]:
        """The open visits of the step, but for joins that wait for their branches."""
        # A range of one, or PostgreSQL would not go by the index for the order alone.
        runs = StepRun.objects.filter(node__range=(self.step, self.step))
        return runs.filter(finished_at=None, item=None).exclude(kind="join")

    def _in_step(self) -> Q:
        """In this step: in all whose visits are open, or the last when it has ended."""
        there = Exists(self._visits().filter(instance=OuterRef("pk")))
        return Q(there) | Q(finished_at__isnull=False, step=self.step)

    def _owned(self) -> Q:
        """Seen to by this person."""
        if self.owner == "nobody":
            return Q(owner=None)
        users = get_user_model()._default_manager
        if self.owner == "me":
            return Q(
                owner__in=[key for key in [getattr(self.reader, "pk", None)] if key]
            )
        named = users.filter(**{get_user_model().USERNAME_FIELD: self.owner})
        return Q(owner__in=list(named.values_list("pk", flat=True)))

    def _found(self) -> Q:
        """Process id, or the beginning of a correlation key."""
        try:
            return Q(pk=UUID(self.q)) | Q(correlation_key=self.q)
        except ValueError:
            some = ~Q(correlation_key="")  # as the index has it
            if connection.vendor == "postgresql":
                return some & Q(correlation_key__startswith=self.q)
            # SQLite finds no LIKE by an index.
            after = f"{self.q}{chr(sys.maxunicode)}"
            return some & Q(correlation_key__gte=self.q, correlation_key__lt=after)

    def parameters(self, **changed: str) -> dict[str, str]:
        """The filters as parameters of a URL, some of them changed; empty ones are left out."""
        given = {name: getattr(self, name) for name in self._names()}
        values: Mapping[str, str] = {**given, **changed}
        return {name: value for name, value in values.items() if value}

    def chips(self) -> list[tuple[str, str]]:
        """What is set, as pairs of name and value, each shown as a chip that can be removed."""
        return [
            (name, value) for name, value in self.parameters().items() if name != "q"
        ]


@dataclass(frozen=True)
class Arm:
    """A part of a list.

    Args:
        rows: what an index finds.
        order: from the newest on, in the words of that index.
        looked_for: what else must be true of them; it is asked of so many rows at once as a page may look at.
        visits: the processes of which are those that are looked at.
    """

    rows: ProcessInstanceQuerySet
    order: tuple[Any, ...]
    looked_for: Q
    visits: QuerySet[StepRun] | None = None

    def newest(
        self, number: int, before: UUID | None = None, after: UUID | None = None
    ) -> tuple[ProcessInstanceQuerySet, UUID | None]:
        """The newest of a span of keys, and the key at which the looking stopped; None when all were looked at."""
        if self.visits is None and not self.looked_for:
            rows = self.rows.filter(**_span("pk", before, after))
            return rows.order_by(*self.order)[:number], None
        keys = self._keys(before, after)
        found = self.rows.filter(self.looked_for, pk__in=keys[:LOOKED_AT])
        edge = next(iter(keys[LOOKED_AT - 1 : LOOKED_AT]), None)
        return found.order_by(NOT_BY_INDEX)[:number], edge

    def _keys(self, before: UUID | None, after: UUID | None) -> QuerySet[Any, UUID]:
        if self.visits is None:
            rows = self.rows.filter(**_span("pk", before, after))
            return rows.order_by(*self.order).values_list("pk", flat=True)
        visits = self.visits.filter(**_span("instance", before, after))
        visits = visits.order_by("node", "-instance_id")
        return visits.values_list("instance_id", flat=True)


def overdue_visits() -> QuerySet[StepRun]:
    """The visits of live processes whose deadline was over a while ago, and is not carried out yet."""
    waits = ["", StepKind.WAIT, StepKind.ASK]
    # By the clock of the database, which has said when: that of a web host may be another.
    rows = StepRun.objects.filter(wake_at__lte=Now() - LATE, kind__in=waits)
    return rows.filter(status=StepStatus.WAITING, finished_at=None)


def stalled_processes() -> list[ProcessInstance]:
    """Those that say they go on, and nothing of them will: no wait, nothing that a worker has or will take, no retry.

    They are looked for among the first that say so of each status. Of each there is what the first page needs.
    """
    found: list[ProcessInstance] = []
    for status in (Status.RUNNING, Status.RETRYING):
        first = ProcessInstance.objects.live().filter(status=status)
        keys = first.order_by("status", "pk").values("pk")[:LOOKED_AT]
        rows = ProcessInstance.objects.filter(pk__in=keys, changed_at__lt=Now() - STILL)
        still = rows.only("pk", "name", "changed_at").exclude(Exists(_waits()))
        for work, process in (
            (StepRun, "instance"),
            (IssuedCommand, "instance"),
            (InboxEvent, "process"),
        ):
            waking = work._default_manager.filter(**{process: OuterRef("pk")})
            still = still.exclude(Exists(waking.filter(wake_at__isnull=False)))
        found += still
    return found


def _waits() -> QuerySet[StepRun]:
    """What a workflow waits for by design; a join or a map waits for its own parts alone.

    A process manager waits for events in each step: when it is said to retry something, that is no reason to wait.
    """
    rows = StepRun.objects.filter(instance=OuterRef("pk"), finished_at=None)
    rows = rows.filter(status=StepStatus.WAITING)
    return rows.exclude(kind__in=["", StepKind.JOIN, StepKind.MAP])


def _span(field: str, before: UUID | None, after: UUID | None) -> dict[str, UUID]:
    """The condition that a key is in a span, its ends excluded."""
    ends = {f"{field}__lt": before, f"{field}__gt": after}
    return {name: end for name, end in ends.items() if end is not None}


@dataclass(frozen=True)
class ListPage:
    """Rows newest first, and the keys from which the pages beside it start."""

    rows: list[ProcessInstance]
    older: str = ""
    first: bool = True
    gone: frozenset[UUID] = field(default_factory=frozenset)
    new: int = 0

    @property
    def new_text(self) -> str:
        return f"{NEW}+" if self.new > NEW else str(self.new)


def page_of(filters: Filters, before: str = "", size: int = PAGE) -> ListPage:
    """The page that starts below the process id `before`, or the newest.

    It has fewer rows than there are when they lie far apart: the next page then goes on from where it stopped looking.
    """
    key = _uuid(before)
    found: dict[UUID, ProcessInstance] = {}
    edges: list[UUID] = []
    for arm in filters.arms():
        rows, edge = arm.newest(size + 1, before=key)
        shown = rows.select_related("definition", "owner").defer("definition__graph")
        found |= {row.pk: row for row in shown}
        edges += [edge] if edge is not None else []
    edge = max(edges, default=None)
    ordered = [found[pk] for pk in sorted(found, reverse=True)]
    known = [row for row in ordered if edge is None or row.pk >= edge]
    older = known[size - 1].pk if len(known) > size else edge
    return ListPage(known[:size], str(older or ""), first=key is None)


def same_rows(
    filters: Filters, shown: list[str], size: int = PAGE, before: str = ""
) -> ListPage:
    """The rows that a page shows already, in their places, and how many that match it does not show yet.

    Args:
        filters: what the page is narrowed to.
        shown: the process ids of its rows.
        size: rows of a full page; a page that is not full could show any that match.
        before: where the page starts; only the newest page is told of new rows.
    """
    keys = [key for key in map(_uuid, shown[:size]) if key is not None]
    rows = ProcessInstance.objects.select_related("definition", "owner")
    known = rows.defer("definition__graph").in_bulk(keys)
    still = filters.applied().filter(pk__in=keys).values_list("pk", flat=True)
    gone = frozenset(keys) - frozenset(still)
    new = 0 if before else _newer(filters, keys, size)
    return ListPage([known[key] for key in keys if key in known], gone=gone, new=new)


def _newer(filters: Filters, keys: list[UUID], size: int) -> int:
    """How many match that are not shown: newer ones, or any where a page has room."""
    after = min(keys) if len(keys) >= size else None
    found: set[UUID] = set()
    for arm in filters.arms():
        rows, _ = arm.newest(NEW + 1 + len(keys), after=after)
        found |= set(rows.values_list("pk", flat=True))
    return min(len(found - set(keys)), NEW + 1)


def _newest_first(definition: str) -> tuple[Any, ...]:
    return ("name", "-pk") if definition else ("-pk",)


def _ids(**conditions: Any) -> list[int]:
    """The keys of the definitions' rows of which this is true."""
    return list(Definition.objects.filter(**conditions).values_list("pk", flat=True))


def _clean(text: str) -> str:
    """A parameter without what no text in the tables can contain."""
    return text.replace("\0", "").strip()[:200]


def _uuid(text: Any) -> UUID | None:
    try:
        return UUID(str(text))
    except ValueError:
        return None
