"""What a migration would do to the processes that match: where they would stand, which cannot go over, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from monitoring.queries.bulk import BulkPreview
from monitoring.queries.bulk import preview as bulk_preview
from monitoring.queries.counts import grouped, uuid_of
from monitoring.queries.processes import in_order
from monitoring.queries.selections import unchanged
from monitoring.queries.texts import translated
from monitoring.queries.versions.compared import picture_of
from orchestrator.engine.operations import migrate, plan_migration
from orchestrator.exceptions import ProcessionError
from orchestrator.models import Definition, ProcessInstance

LOOKED_AT = 10
"""Processes that are looked at one by one, the newest: each is planned as it would be carried over."""


@dataclass(frozen=True)
class StepMoves:
    """The processes in one step.

    Args:
        label: of the step in which they stand.
        target: of the step in which they would.
        number: how many of those that were looked at would go there.
    """

    label: str
    target: str
    number: int


@dataclass(frozen=True)
class Reason:
    """Why some cannot go over.

    Args:
        text: the reason.
        number: how many of those that were looked at.
        example: one of them.
    """

    text: str
    number: int
    example: UUID


@dataclass(frozen=True)
class MigrationPreview:
    """What a migration would do.

    Args:
        found: what matches, and where it stands.
        moves: where those that were looked at would stand.
        reasons: why others of them cannot go over.
        looked_at: how many were.
    """

    found: BulkPreview
    moves: list[StepMoves] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)
    looked_at: int = 0

    @property
    def whole(self) -> bool:
        """Whether all that matches was looked at."""
        return self.found.exact and self.looked_at >= self.found.number

    @property
    def fitting(self) -> int:
        """How many of those that were looked at can go over."""
        return self.looked_at - sum(one.number for one in self.reasons)


def migration_preview(
    about: Mapping[str, Any],
    at: datetime,
    user: Any,
    versions: tuple[Definition, Definition],
    steps: Mapping[str, str],
) -> MigrationPreview:
    """What a migration would do if it were begun now; nothing is changed.

    Args:
        about: what is selected.
        at: the moment of the page.
        user: who would do it.
        versions: the two.
        steps: which step of the newer one each of the other is, as a person says.
    """
    found = bulk_preview(migrate, "processes", about, at, user)
    _old, new = versions
    before, after = (
        {node.id: node.label for node in picture_of(one).nodes} for one in versions
    )
    moves: Counter[tuple[str, str]] = Counter()
    reasons: dict[str, list[UUID]] = {}
    some = _newest(about, at)
    for process in some:
        try:
            places = plan_migration(process, new.version, dict(steps))
        except ProcessionError as refused:
            reasons.setdefault(translated(refused.told, process.definition), []).append(
                process.pk
            )
        except Exception as error:  # noqa: BLE001  # the application's code may raise anything
            text = f"{type(error).__name__}: {error}"[:300]
            reasons.setdefault(text, []).append(process.pk)
        else:
            moves.update(dict.fromkeys(places, 1))
    return MigrationPreview(
        found,
        [
            StepMoves(before.get(one, one), after.get(other, other), number)
            for (one, other), number in moves.most_common()
        ],
        [Reason(text, len(some), some[0]) for text, some in reasons.items()],
        len(some),
    )


def _newest(about: Mapping[str, Any], at: datetime) -> list[ProcessInstance]:
    """The newest of what matches."""
    parts = [arm.newest(LOOKED_AT)[0] for arm in unchanged(about, at)]
    keys = {uuid_of(stored) for stored, _count in grouped(parts, "id", cap=LOOKED_AT)}
    wanted = sorted(keys, reverse=True)[:LOOKED_AT]
    # One definition for all that are on it: its graph, which a plan needs, may be large.
    rows = ProcessInstance.objects.prefetch_related("definition")
    return in_order(rows, wanted)
