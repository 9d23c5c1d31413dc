"""The preview of a migration: the new steps of processes, and why some cannot be migrated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from monitoring.base.translation import translate
from monitoring.definition.versions.comparison import version_graph
from monitoring.lists.bulk.bulk import BulkPreview, bulk_preview
from monitoring.lists.bulk.selections import unchanged_arms
from monitoring.lists.processes.pages import first_places
from monitoring.queries.processes import fetch_in_order
from orchestrator.engine.operations import migrate, plan_migration
from orchestrator.exceptions import ProcessionError
from orchestrator.models import Definition, ProcessInstance

LOOKED_AT = 10
"""The newest processes for which the preview plans the migration."""


@dataclass(frozen=True)
class MigrationPreview:
    """The preview of a migration.

    Args:
        found: the matching processes.
        moves: labels of the old and the new step, and the number of planned processes.
        reasons: why others cannot be migrated, with the processes of each reason.
        looked_at: the number of processes for which a migration was planned.
    """

    found: BulkPreview
    moves: list[tuple[str, str, int]] = field(default_factory=list)
    reasons: dict[str, list[UUID]] = field(default_factory=dict)
    looked_at: int = 0

    @property
    def whole(self) -> bool:
        """Whether all matching processes were planned."""
        return self.found.exact and self.looked_at >= self.found.number

    @property
    def fitting(self) -> int:
        """The number of planned processes that can be migrated."""
        return self.looked_at - sum(map(len, self.reasons.values()))


def migration_preview(
    about: Mapping[str, Any],
    at: datetime,
    user: Any,
    versions: tuple[Definition, Definition],
    steps: Mapping[str, str],
) -> MigrationPreview:
    """Return the preview of a migration; nothing is changed.

    Args:
        about: the filters of the selection.
        at: the moment of the page.
        user: the person.
        versions: the older and the newer version.
        steps: the mapping of steps that the person chose.
    """
    found = bulk_preview(migrate, "processes", about, at, user)
    _old, new = versions
    before, after = (
        {node.id: node.label for node in version_graph(one).nodes} for one in versions
    )
    moves: Counter[tuple[str, str]] = Counter()
    reasons: dict[str, list[UUID]] = {}
    some = _newest(about, at)
    for process in some:
        places, why = _plan(process, new.version, dict(steps))
        moves.update(dict.fromkeys(places, 1))
        if why:
            reasons.setdefault(why, []).append(process.pk)
    return MigrationPreview(
        found,
        [
            (before.get(one, one), after.get(other, other), number)
            for (one, other), number in moves.most_common()
        ],
        reasons,
        len(some),
    )


def _plan(
    process: ProcessInstance, version: int, steps: dict[str, str]
) -> tuple[Iterable[tuple[str, str]], str]:
    """Return the old and new steps of a process, and why it cannot be migrated; "" if it can."""
    try:
        return plan_migration(process, version, steps), ""
    except ProcessionError as refused:
        return (), translate(refused.told, process.definition)
    except Exception as error:  # noqa: BLE001  # the application's code may raise anything
        return (), f"{type(error).__name__}: {error}"[:300]


def _newest(about: Mapping[str, Any], at: datetime) -> list[ProcessInstance]:
    """Return the newest matching processes."""
    parts = [arm.newest(LOOKED_AT) for arm in unchanged_arms(about, at)]
    first = [place.pk for place in first_places(parts, LOOKED_AT)]
    # One object for each definition: its graph, which a plan needs, may be large.
    rows = ProcessInstance.objects.prefetch_related("definition")
    return fetch_in_order(rows, first)
