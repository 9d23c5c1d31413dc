"""The rows of joins, read without what their steps were given or have found: that may be large.

Nearly every step of a graph asks for some, and so it is written out once: through a queryset's methods it takes five
times as long, a third of all that such a step takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db import connection

from orchestrator.engine.storage.table import Table
from orchestrator.models import StepKind, StepRun, StepStatus

READ = {
    "id",
    "instance",
    "node",
    "kind",
    "visit",
    "item",
    "round",
    "redo",
    "status",
    "arrived",
    "taken",
    "progress",
    "error",
    "child",
    "finished_at",
}
"""By which columns it is decided how a join stands, and what becomes of one that is over."""


class JoinTable(Table[StepRun]):
    """How joins are read. They are written like all visits."""

    def __init__(self) -> None:
        super().__init__(StepRun)
        self.columns = [field for field in self.columns if field.name in READ]
        self.attnames = tuple(field.attname for field in self.columns)

    def of(self, process: UUID, names: Sequence[str]) -> dict[str, StepRun]:
        """The last rows of these steps of a process, as far as they have any."""
        key = self._param(self.fields["instance_id"], process)
        postgresql = connection.vendor == "postgresql"
        these = "= ANY(%s)" if postgresql else f"IN ({', '.join(['%s'] * len(names))})"
        given: list[Any] = [list(names)] if postgresql else list(names)
        # Not prepared: it would be planned once, while the table is small, and read all of it ever after.
        with connection.cursor() as cursor:
            cursor.execute(
                f"{self._rows} AND node {these} ORDER BY round", [key, *given]
            )
            rows = cursor.fetchall()
        return {row.node: row for row in map(self._object, rows)}

    @cached_property
    def _rows(self) -> str:
        # What is said of the kind twice is the condition of the index.
        return (
            f"SELECT {self._listed} FROM {self.name} WHERE instance_id = %s"  # noqa: S608  # names are the model's
            f" AND visit = 1 AND item IS NULL AND NOT (kind = '') AND kind <> '{StepKind.UNDO}' AND NOT redo"
            f" AND status <> '{StepStatus.SUPERSEDED}'"
        )
