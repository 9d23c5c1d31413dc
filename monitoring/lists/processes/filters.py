"""The filters of the list of processes, as parameters of an address."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Self
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.base.graphs import find_label, find_step
from monitoring.base.masking import sees_data
from monitoring.base.statuses import look
from monitoring.lists.processes.arm import Arm
from monitoring.lists.processes.columns import COLUMNS, Column, column_choices
from monitoring.lists.processes.declared_fields import check_conditions
from monitoring.lists.processes.stalled_processes import stalled_processes
from monitoring.lists.processes.text_search import (
    has_key_or_id,
    keys_with_text,
    outside_ids,
)
from monitoring.queries.activity import (
    HERE,
    LEFT,
    NOW,
    WINDOWS,
    activity_word,
    ended_within,
    open_visits,
    overdue_visits,
    parse_window,
    visits_with_activity,
)
from monitoring.queries.conditions import (
    LONGEST,
    ConditionMistake,
    ConditionTree,
    parse_conditions,
)
from monitoring.queries.counts import MANY, count_rows
from monitoring.queries.data_values import matching_keys
from monitoring.queries.lists import Search, clean_text
from monitoring.queries.processes import NOT_BY_INDEX
from orchestrator.models import Definition, ProcessInstance, Status, StepRun
from orchestrator.models.process_instance import (
    LIVE,
    NEWEST_FIRST,
    ProcessInstanceQuerySet,
)

OLDEST = "oldest"
"""The other order that all indexes of a list have: oldest first."""

ORDERS = (
    OLDEST,
    *(f"{sign}{name}" for name in COLUMNS if name != "started" for sign in ("", "-")),
)
"""The orders beside newest first: by another column, with "-" descending."""

ACTIVITIES = (HERE, *NOW, *(f"{LEFT}{window}" for window in WINDOWS))
"""The values of `doing`."""

EACH = 10
"""The maximum number of a version's graphs that are read one by one; more are searched among all processes."""


@dataclass(frozen=True)
class Filters(Search):
    """The filters of the list.

    Args:
        where: conditions on the data, as written.
        columns: comma-separated names of shown columns.
        sort: one of `ORDERS`.
        graph: the beginning of a definition's fingerprint, for versions with several graphs.
        doing: an activity in the step, or a window in which visits of it ended; ignored without a step.
        owner: a user name, "me" or "nobody".
        started_since: the earliest start; no parameter of the address.
    """

    definition: str = ""
    version: str = ""
    graph: str = ""
    status: str = ""
    step: str = ""
    doing: str = ""
    escalated: str = ""
    overdue: str = ""
    stalled: str = ""
    owner: str = ""
    q: str = ""
    where: str = ""
    columns: str = ""
    sort: str = ""
    LOOKS: ClassVar[tuple[str, ...]] = ("columns", "sort")
    """Parameters that exclude no rows."""

    started_since: datetime | None = field(default=None, kw_only=True)

    LABELS = {
        "definition": gettext_lazy("Definition"),
        "version": gettext_lazy("Version"),
        "graph": gettext_lazy("Graph"),
        "status": gettext_lazy("Status"),
        "step": gettext_lazy("Step"),
        "doing": gettext_lazy("There"),
        "escalated": gettext_lazy("Escalated"),
        "overdue": gettext_lazy("Overdue"),
        "stalled": gettext_lazy("Stalled"),
        "owner": gettext_lazy("Owner"),
        "q": gettext_lazy("Found by"),
        "where": gettext_lazy("Data"),
    }

    @classmethod
    def from_query(
        cls, query: QueryDict | Mapping[str, Any], reader: Any = None, **fixed: str
    ) -> Self:
        where = clean_text(query.get("where", ""), LONGEST + 1)
        found = super().from_query(query, reader, **{"where": where, **fixed})
        return found if found.sort in ("", *ORDERS) else replace(found, sort="")

    def by_name(self) -> "Filters":
        """Replace the label of a step by its name."""
        if not self.step:
            return self
        return replace(self, step=find_step(self.definition, self.step))

    @cached_property
    def _parsed_where(self) -> tuple[ConditionTree | None, str]:
        """The conditions on the data, or the mistake in them."""
        try:
            found = parse_conditions(self.where) if self.where else None
            if found is not None:
                _check_reader(self.reader)
                check_conditions(found, self.definition)
        except ConditionMistake as mistake:
            return None, str(mistake)
        return found, ""

    def mistakes(self) -> Iterator[str]:
        """Yield the mistake in the conditions on the data."""
        if self._parsed_where[1]:
            yield self._parsed_where[1]

    @property
    def conditions(self) -> ConditionTree | None:
        """The conditions on the data, if there are any."""
        return self._parsed_where[0]

    def matches(self, keys: Sequence[UUID]) -> set[UUID]:
        """Return the keys of the processes that still match."""
        if self.mistake:
            return set()
        rows = self.applied(keys)
        if self.conditions is not None:
            return set(matching_keys(rows, self.conditions))
        return set(rows.values_list("pk", flat=True))

    def applied(self, among: Sequence[UUID] | None = None) -> ProcessInstanceQuerySet:
        """Return the processes that match, all or among some, without conditions on the data."""
        rows = self._indexed_rows()
        if among is not None:
            rows = rows.filter(pk__in=among)
        if self.q:
            rows = rows.filter(pk__in=keys_with_text(self.q, among))
        rows = rows.filter(self._unindexed())
        if self.status == "live":
            rows = rows.live()
        return rows.filter(self._in_step()) if self.step else rows

    def arms(self) -> list[Arm]:
        """Return the list as parts that an index finds."""
        if self.mistake:
            return []
        where, oldest = self.conditions, self.oldest_first
        return [replace(arm, where=where, oldest=oldest) for arm in self._arms()]

    @property
    def _is_live(self) -> bool:
        """Whether only live processes match."""
        return self.status == "live" or self.status in LIVE

    @property
    def oldest_first(self) -> bool:
        """Whether the oldest come first."""
        return self.sort == OLDEST

    @property
    def column(self) -> str:
        """The column by which the list is sorted; "" for the start."""
        return "" if self.oldest_first else self.sort.removeprefix("-")

    def _arms(self) -> list[Arm]:
        parts = self._parts()
        if self.q:
            parts = self._with_key_or_id(parts)
        arms = [one for arm in parts for one in self._limit_to_step(arm)]
        return [*arms, self._with_outside_id()] if self.q else arms

    def _with_key_or_id(self, parts: list[Arm]) -> list[Arm]:
        """Limit parts to the key or id of the search, which finds the rows itself if they are few."""
        found, order = has_key_or_id(self.q), NOT_BY_INDEX
        if count_rows(ProcessInstance.objects.filter(found), MANY).at_least:
            return [arm.filter(found) for arm in parts]
        return [replace(arm, rows=arm.rows.filter(found), order=order) for arm in parts]

    def _with_outside_id(self) -> Arm:
        """Return the part with the outside id of the search."""
        unindexed = self._unindexed()
        if self.status == "live":
            unindexed &= Q(finished_at__isnull=True)
        if self.step:
            unindexed &= self._in_step()
        return Arm(self._indexed_rows(), NOT_BY_INDEX, unindexed, outside_ids(self.q))

    def _limit_to_step(self, arm: Arm) -> list[Arm]:
        """Limit a part to the processes in the step or that ended in it, or to one activity in the step."""
        if not self.step:
            return [arm]
        if parse_window(self.doing):
            return [arm.filter(self._in_step())]
        now = replace(arm, beside=self._visits())
        if self.doing in (HERE, *NOW):
            return [now.filter(self._in_step())]
        if self._is_live:
            return [now]
        return [now, arm.filter(Q(finished_at__isnull=False, step=self.step))]

    def _parts(self) -> list[Arm]:
        """Return the parts that indexes find: live processes by status, and by graph for few graphs of a version."""
        by_visits = self.step and not parse_window(self.doing)
        if self._is_live and not by_visits:
            graphs = _ids(**stored) if (stored := self._definition_conditions()) else []
            if 0 < len(graphs) <= EACH:
                return self._parts_on(graphs)
        unindexed = self._unindexed()
        order = ("name", *NEWEST_FIRST) if self.definition else NEWEST_FIRST
        parts = [self._indexed_rows()]
        if self.status == "live":
            parts = [parts[0].live()]
            if not by_visits:
                parts = [parts[0].filter(status=status) for status in LIVE]
        return [Arm(part, order, unindexed) for part in parts]

    def _parts_on(self, graphs: Sequence[int]) -> list[Arm]:
        """Return a part for each graph and status."""
        statuses = LIVE if self.status == "live" else (self.status,)
        order = ("definition", "status", *NEWEST_FIRST)
        rest = replace(self, definition="", version="", graph="")
        live = [rest._indexed_rows().live_on(graph) for graph in graphs]
        parts = [rows.filter(status=status) for rows in live for status in statuses]
        return [Arm(rows, order, rest._unindexed()) for rows in parts]

    def _indexed_rows(self) -> ProcessInstanceQuerySet:
        """Return the processes that indexes find."""
        rows = ProcessInstance.objects.all()
        if self.definition:
            # A range of one value: PostgreSQL would otherwise scan all processes, newest first.
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
            rows = rows.filter(self._of_owner())
        return rows

    def _unindexed(self) -> Q:
        """Return the conditions that no index finds."""
        found = Q()
        if stored := self._definition_conditions():
            found &= Q(definition__in=_ids(**stored))
        if self.status == Status.COMPLETED:
            found &= Q(status=Status.COMPLETED)
        if self.started_since is not None:
            found &= Q(started_at__gte=self.started_since)
        return found

    def _definition_conditions(self) -> dict[str, Any]:
        """Return the conditions on the stored definitions; empty without a version or graph."""
        found: dict[str, Any] = {}
        if self.version.isdecimal():
            found["version"] = int(self.version[:9])
        if self.graph:
            found["fingerprint__startswith"] = self.graph
        return found | ({"name": self.definition} if found and self.definition else {})

    def _visits(self) -> QuerySet[StepRun]:
        """Return the open visits of the step, without waiting joins."""
        # A range of one value: PostgreSQL would not use the index for the order alone.
        rows = open_visits().filter(node__range=(self.step, self.step))
        return rows.order_by("node", "-process_started_at", "-instance_id")

    def _in_step(self) -> Q:
        """Return the condition to be in the step or to have ended in it, or to have one activity in the step."""
        if window := parse_window(self.doing):
            here = StepRun.objects.filter(instance=OuterRef("pk"), node=self.step)
            return Q(Exists(here.filter(ended_within(window))))
        there = self._visits().filter(instance=OuterRef("pk"))
        if self.doing in (HERE, *NOW):
            return Q(Exists(visits_with_activity(there, self.doing)))
        return Q(Exists(there)) | Q(finished_at__isnull=False, step=self.step)

    def _of_owner(self) -> Q:
        """Return the condition on the owner."""
        if self.owner == "nobody":
            return Q(owner=None)
        users = get_user_model()._default_manager
        if self.owner == "me":
            mine = filter(None, [getattr(self.reader, "pk", None)])
            return Q(owner__in=list(mine))
        named = users.filter(**{get_user_model().USERNAME_FIELD: self.owner})
        return Q(owner__in=list(named.values_list("pk", flat=True)))

    def parameters(self, **changed: str) -> dict[str, str]:
        """Return the filters as parameters of an address, with changes; `doing` needs a step."""
        found = super().parameters(**changed)
        if "step" not in found:
            found.pop("doing", None)
        return found

    def narrowing(self) -> dict[str, str]:
        """Return the parameters that exclude rows."""
        given = self.parameters().items()
        return {name: value for name, value in given if name not in self.LOOKS}

    def stored(self) -> dict[str, str]:
        """Return the narrowing parameters for storage with an operation; the reader's name replaces "me"."""
        mine = {"owner": self.reader.get_username()} if self.owner == "me" else {}
        return self.narrowing() | mine

    @property
    def step_word(self) -> str:
        """The label of the step; "" for none."""
        return find_label(self.definition, self.step) if self.step else ""

    def words(self) -> dict[str, Any]:
        live = _("not ended") if self.status == "live" else look(self.status).word
        return {
            "step": self.step_word,
            "doing": activity_word(self.doing),
            "status": live,
            "owner": owner_word(self.owner),
        }

    @property
    def all_columns(self) -> list[Column]:
        """All columns, and whether each is shown."""
        return column_choices(self.columns)

    @property
    def orders(self) -> list[Column]:
        """The orders by a column, and whether each is chosen."""
        return [
            Column(name, f"{column.label} {arrow}", name == self.sort)
            for column in self.all_columns
            for name, arrow in ((column.name, "↑"), (f"-{column.name}", "↓"))
            if name in ORDERS
        ]

    @property
    def shown_columns(self) -> list[Column]:
        """The shown columns."""
        return [column for column in self.all_columns if column.chosen]


def owner_word(owner: str) -> str:
    """Return the label of an owner."""
    return {"me": _("me"), "nobody": _("nobody")}.get(owner, owner)


def _check_reader(reader: Any) -> None:
    """Refuse conditions on data to readers who may not see data: counts would reveal it.

    Raises:
        ConditionMistake: the reader may not see data.
    """
    if reader is not None and not sees_data(reader):
        raise ConditionMistake(
            _("What processes are about is not yours to see, nor to look for.")
        )


def _ids(**conditions: Any) -> list[int]:
    """Return the keys of the stored definitions that match."""
    return list(Definition.objects.filter(**conditions).values_list("pk", flat=True))
