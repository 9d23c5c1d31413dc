"""Processes that stand still, each with what is known of why, and whether a nudge helps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, UUIDField, Value
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _

from monitoring.queries.counts import MARK, ForEach, grouped
from monitoring.queries.graphs import labels_of
from monitoring.queries.lists import KeyedPage, number_in
from monitoring.queries.processes import in_order, processes
from monitoring.statuses import look
from orchestrator.collecting import gathered
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
"""Things that nothing will do, of one process, that are named."""

STILL = timedelta(minutes=1)
"""So long nothing has happened, and nothing is about to, when a process counts as stalled."""

LOOKED_AT = 1_000
"""Processes that one look looks at, of each status."""

GREATEST = UUID(int=(1 << 128) - 1)
"""No process has a greater key."""

SAY_SO = (Status.RUNNING, Status.RETRYING)
"""The statuses that say that a process goes on."""


@dataclass(frozen=True)
class StalledProcess:
    """A process that says it goes on, and of which nothing will be done.

    Args:
        instance: the process.
        reasons: why, in words.
        helps: whether a nudge lets it go on.
        why: why it cannot be nudged by this reader; "" if it can.
    """

    instance: ProcessInstance
    reasons: Sequence[str]
    helps: bool
    why: str = ""


@dataclass(frozen=True)
class StalledPage(KeyedPage[StalledProcess]):
    """Those of a page, the longest still first, and how many there are in all."""

    number: int = 0


def stalled_processes() -> list[ProcessInstance]:
    """Those that say they go on, and nothing of them will: no wait, nothing that a worker has or will take, no retry.

    They are looked for among the first that say so of each status. Of each there is what its place in a list needs.
    """
    found = list[ProcessInstance]()
    for status in SAY_SO:
        # As a value, and not looked for within: so the database knows how few these are.
        last = _last_looked_at(status).first()
        found += _still(status, GREATEST if last is None else last["pk"])
    return found


def stalled_by_definition() -> list[tuple[str, int, datetime | None]]:
    """The same as the names of definitions, each with how many there are, and since when the first of them."""
    each = ForEach(_still_of_each, SAY_SO)
    return grouped(each, "name", oldest="changed_at", cap=LOOKED_AT)


def _still_of_each() -> QuerySet[ProcessInstance]:
    greatest = Value(GREATEST, output_field=UUIDField())
    return _still(MARK, Coalesce(Subquery(_last_looked_at(MARK)), greatest))


def _last_looked_at(status: str) -> QuerySet[ProcessInstance, dict[str, UUID]]:
    """The key of the last process of this status that is looked at, if there are more."""
    rows = ProcessInstance.objects.live().filter(status=status)
    return rows.order_by("status", "pk").values("pk")[LOOKED_AT - 1 : LOOKED_AT]


def _still(status: str, last: UUID | Coalesce) -> QuerySet[ProcessInstance]:
    """Those that stand still, of the first that have this status.

    Up to a key, and not by the keys of all: each of these would have to be found once more.
    """
    rows = ProcessInstance.objects.live().filter(status=status)
    rows = rows.filter(pk__lte=last, changed_at__lt=Now() - STILL)
    still = rows.only("pk", "name", "changed_at").exclude(Exists(_goes_on()))
    for work, process in ((IssuedCommand, "instance"), (InboxEvent, "process")):
        waking = work._default_manager.filter(**{process: OuterRef("pk")})
        still = still.exclude(Exists(waking.filter(wake_at__isnull=False)))
    return still


def _goes_on() -> QuerySet[StepRun]:
    """What wakes by itself, or what a workflow waits for by design; a join or a map waits for its own parts alone.

    A process manager waits for events in each step: when it is said to retry something, that is no reason to wait.
    """
    waits = Q(status=StepStatus.WAITING) & ~Q(
        kind__in=["", StepKind.JOIN, StepKind.MAP]
    )
    rows = StepRun.objects.filter(instance=OuterRef("pk"), finished_at=None)
    return rows.filter(waits | Q(wake_at__isnull=False))


def stalled_page(user: Any, definition: str = "", after: str = "") -> StalledPage:
    """The page that starts after so many.

    Args:
        user: who may nudge them, or not.
        definition: the name of the only one that is wanted; "" for all.
        after: how many are passed over.
    """
    known = [one for one in stalled_processes() if definition in ("", one.name)]
    known.sort(key=lambda one: (one.changed_at, one.pk))
    begin = number_in(after, 9) or 0
    keys = [one.pk for one in known[begin : begin + PAGE]]
    shown = in_order(processes("owner", data=False), keys)
    why, open_runs = _why_not(shown, user), _open_visits(keys)
    asleep = _asleep(keys, {one.pk: labels_of(one.definition) for one in shown})
    older = str(begin + PAGE) if len(known) > begin + PAGE else ""
    return StalledPage(
        [
            StalledProcess(
                one,
                asleep.get(one.pk) or [_other(one, open_runs.get(one.pk, []))],
                bool(asleep.get(one.pk)) or bool(open_runs.get(one.pk)),
                why[one.pk],
            )
            for one in shown
        ],
        older,
        number=len(known),
    )


def _why_not(processes: Collection[ProcessInstance], user: Any) -> dict[UUID, str]:
    nudge = on_processes()["nudge"]
    return {one.pk: nudge.refusal(user, Circumstances(one)) for one in processes}


def _asleep(
    keys: Collection[UUID], labels: Mapping[UUID, Mapping[str, str]]
) -> dict[UUID, list[str]]:
    """What nothing will do, in words, by process."""
    found: dict[UUID, list[str]] = defaultdict(list)
    work = sleeping_work(keys)
    # One more than is named says that there are more.
    most = (REASONS + 1) * PAGE
    for pk, node, status in work.visits.values_list("instance", "node", "status")[
        :most
    ]:
        given = {"step": labels[pk].get(node, node), "status": look(status).word}
        found[pk].append(
            _(
                "%(step)s is “%(status)s”, but has no time at which a worker would take it."
            )
            % given
        )
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
    """The steps in which these processes stand."""
    rows = StepRun.objects.filter(instance__in=keys, finished_at=None, item=None)
    return gathered(rows.order_by("pk").values_list("instance", "node")[: 10 * PAGE])


def _other(process: ProcessInstance, standing: Sequence[str]) -> str:
    """Why a process stands still of which nothing is asleep."""
    if not standing:
        return _(
            "It has not ended, but stands in no step: cancel it, and restart it as new."
        )
    if process.status == Status.RETRYING:
        return _("It says that it tries again, but nothing waits for another attempt.")
    labels = labels_of(process.definition)
    steps = ", ".join(labels.get(node, node) for node in standing[:REASONS])
    return _("It says that it goes on, but only waits in %(steps)s.") % {"steps": steps}
