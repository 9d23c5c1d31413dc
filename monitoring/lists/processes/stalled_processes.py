"""The stalled processes, each with the reason, and whether a nudge helps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import (
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _

from monitoring.base.graphs import labels_of
from monitoring.base.statuses import look
from monitoring.queries.counts import MARK, ForEach, count_by
from monitoring.queries.lists import KeyedPage, parse_number
from monitoring.queries.processes import (
    ProcessPlace,
    compare_pairs,
    fetch_in_order,
    process_rows,
)
from orchestrator.containers import group_by_key
from orchestrator.engine.operations import Circumstances, on_processes, sleeping_work
from orchestrator.models import (
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)

PAGE = 50
REASONS = 3
"""The number of reasons of one process that the page names."""

STILL = timedelta(minutes=1)
"""The time without a change after which a process can count as stalled."""

LOOKED_AT = 1_000
"""The number of processes of each status that one query looks at."""

LAST = ProcessPlace(datetime(9999, 1, 1, tzinfo=UTC), UUID(int=(1 << 128) - 1))
"""A place above those of all processes."""

SAY_SO = (Status.RUNNING, Status.RETRYING)
"""The statuses of processes that should continue by themselves."""


@dataclass(frozen=True)
class StalledProcess:
    """A process that should continue, but has no work that a worker would do.

    Args:
        instance: the process.
        reasons: why, in words.
        helps: whether a nudge lets it continue.
        why: why this reader may not nudge it; "" if they may.
    """

    instance: ProcessInstance
    reasons: Sequence[str]
    helps: bool
    why: str = ""


@dataclass(frozen=True)
class StalledPage(KeyedPage[StalledProcess]):
    """A page of stalled processes, the longest stalled first, and their number in all."""

    number: int = 0


def stalled_processes() -> list[ProcessInstance]:
    """Return the stalled processes among the first of each status: without a wait, due or claimed work, or a retry.

    They have only the columns that the order of the list needs.
    """
    found = list[ProcessInstance]()
    for status in SAY_SO:
        # As a value, not as a subquery: the database then knows how few rows these are.
        row = _last_looked_at(status).values_list("started_at", "pk").first()
        last = LAST if row is None else ProcessPlace(*row)
        found += _still_processes(status, last.as_values())
    return found


def stalled_by_definition() -> list[tuple[str, int, datetime | None]]:
    """Return the number of stalled processes by definition, and the last change of the longest stalled one."""
    each = ForEach(_still_of_each, SAY_SO)
    return count_by(each, "name", oldest="changed_at", cap=LOOKED_AT)


def _still_of_each() -> QuerySet[ProcessInstance]:
    last = _last_looked_at(MARK)
    place = [
        Coalesce(Subquery(last.values(name)), value)
        for name, value in zip(("started_at", "pk"), LAST.as_values(), strict=True)
    ]
    return _still_processes(MARK, place)


def _last_looked_at(status: str) -> QuerySet[ProcessInstance]:
    """Return the query for the last process of a status to look at, if there are more: the oldest come first."""
    rows = ProcessInstance.objects.live().filter(status=status)
    return rows.order_by("status", "started_at", "pk")[LOOKED_AT - 1 : LOOKED_AT]


def _still_processes(status: str, last: Sequence[Any]) -> QuerySet[ProcessInstance]:
    """Return the stalled processes among the first of a status.

    The last place limits them, since the database would look up each key of a list.
    """
    rows = ProcessInstance.objects.live().filter(status=status)
    until = compare_pairs([F("started_at"), F("pk")], "<=", last)
    rows = rows.filter(until, changed_at__lt=Now() - STILL)
    still = rows.only("pk", "name", "changed_at").exclude(Exists(_goes_on()))
    for work, process in ((IssuedCommand, "instance"), (InboxEvent, "process")):
        waking = work._default_manager.filter(**{process: OuterRef("pk")})
        still = still.exclude(Exists(waking.filter(wake_at__isnull=False)))
    return still


def _goes_on() -> QuerySet[StepRun]:
    """Return the visits that wake by themselves, or wait by design.

    A join, a map or a step of a process manager is no such wait: it continues only with other work.
    """
    waits = Q(status=StepStatus.WAITING) & ~Q(
        kind__in=["", StepKind.JOIN, StepKind.MAP]
    )
    rows = StepRun.objects.filter(instance=OuterRef("pk"), finished_at=None)
    return rows.filter(waits | Q(wake_at__isnull=False))


def stalled_page(user: Any, definition: str = "", after: str = "") -> StalledPage:
    """Return a page of stalled processes.

    Args:
        user: the reader, for the permission to nudge.
        definition: a name to filter by; "" for all.
        after: the number of processes before the page.
    """
    known = [one for one in stalled_processes() if definition in ("", one.name)]
    known.sort(key=lambda one: (one.changed_at, one.pk))
    begin = parse_number(after, 9) or 0
    keys = [one.pk for one in known[begin : begin + PAGE]]
    shown = fetch_in_order(process_rows("owner", data=False), keys)
    nudge, open_runs = on_processes()["nudge"], _open_visits(keys)
    asleep = _sleeping_texts(keys, {one.pk: labels_of(one.definition) for one in shown})
    older = str(begin + PAGE) if len(known) > begin + PAGE else ""
    rows = [
        StalledProcess(
            one,
            asleep.get(one.pk) or [_other_reason(one, open_runs.get(one.pk, []))],
            bool(asleep.get(one.pk) or open_runs.get(one.pk)),
            nudge.refusal(user, Circumstances(one)),
        )
        for one in shown
    ]
    return StalledPage(rows, older, number=len(known))


def _sleeping_texts(
    keys: Collection[UUID], labels: Mapping[UUID, Mapping[str, str]]
) -> dict[UUID, list[str]]:
    """Return the sleeping work in words, by process."""
    found: dict[UUID, list[str]] = defaultdict(list)
    work = sleeping_work(keys)
    # One more than the page names shows that there are more.
    most = (REASONS + 1) * PAGE
    visits = work.visits.values_list("instance", "node", "status")
    for pk, node, status in visits[:most]:
        given = {"step": labels[pk].get(node, node), "status": look(status).word}
        told = _(
            "%(step)s is “%(status)s”, but has no time at which a worker would take it."
        )
        found[pk].append(told % given)
    for pk, kind in work.commands.values_list("instance", "type")[:most]:
        told = _("The command %(type)s is to be carried out, but nothing will.")
        found[pk].append(told % {"type": kind})
    for pk, kind in work.events.values_list("process", "type")[:most]:
        told = _("The event %(type)s was received, but nothing will offer it.")
        found[pk].append(told % {"type": kind})
    return {
        pk: [*texts[:REASONS], _("And more.")] if len(texts) > REASONS else texts
        for pk, texts in found.items()
    }


def _open_visits(keys: Collection[UUID]) -> dict[UUID, list[str]]:
    """Return the steps with open visits of these processes."""
    rows = StepRun.objects.filter(instance__in=keys, finished_at=None, item=None)
    found = rows.order_by("pk").values_list("instance", "node")[: 10 * PAGE]
    return group_by_key(found)


def _other_reason(process: ProcessInstance, standing: Sequence[str]) -> str:
    """Say why a process without sleeping work is stalled."""
    if not standing:
        return _(
            "It has not ended, but stands in no step: cancel it, and restart it as new."
        )
    if process.status == Status.RETRYING:
        return _("It says that it tries again, but nothing waits for another attempt.")
    labels = labels_of(process.definition)
    steps = ", ".join(labels.get(node, node) for node in standing[:REASONS])
    return _("It says that it goes on, but only waits in %(steps)s.") % {"steps": steps}
