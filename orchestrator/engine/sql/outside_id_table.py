"""The outside ids of processes: the change that writes a process's data also writes its outside ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from orchestrator.definition.outside_ids import MOST, Identifier, identifiers
from orchestrator.definition.process_definition import ProcessDefinition
from orchestrator.engine.sql.batch import Statement, Touched
from orchestrator.engine.sql.table import Table
from orchestrator.models import OutsideId

MOST_FIELDS = 50
"""The most fields whose ids are read for one process; no definition has more."""


class OutsideIdTable(Table[OutsideId]):
    """The statements of the outside ids."""

    def __init__(self) -> None:
        super().__init__(OutsideId)

    def changes(
        self,
        definition: type[ProcessDefinition],
        process: UUID,
        was: Mapping[str, Any],
        now: Mapping[str, Any],
    ) -> list[Statement]:
        """Return the writes by which a process's outside ids follow its data; none where nothing changes.

        Args:
            definition: the definition, with the fields of its outside ids.
            process: the process id.
            was: the stored data; empty for a new process.
            now: the new data.
        """
        if not definition.outside_ids:
            return []
        before = identifiers(definition.outside_ids, was)
        return self._replaced(process, before, identifiers(definition.outside_ids, now))

    def renewals(
        self, process: UUID, definition: type[ProcessDefinition], now: Mapping[str, Any]
    ) -> list[Statement]:
        """Return the same after a change of the definition: the stored ids are read from the table.

        Args:
            process: the process id.
            definition: the new definition, with the fields of its outside ids.
            now: the process's data.
        """
        rows = OutsideId.objects.filter(instance=process)
        stored = rows.values_list("field", "value")[: MOST * MOST_FIELDS]
        before = dict.fromkeys(Identifier(*row) for row in stored)
        return self._replaced(process, before, identifiers(definition.outside_ids, now))

    def _replaced(
        self,
        process: UUID,
        before: Mapping[Identifier, None],
        after: Mapping[Identifier, None],
    ) -> list[Statement]:
        gone = [one for one in before if one not in after]
        new = [one for one in after if one not in before]
        removal = [self._removed(process, gone)] if gone else []
        return [*removal, *self.inserts(list(outside_id_rows(process, new)))]

    def _removed(self, process: UUID, gone: list[Identifier]) -> Statement:
        marks = ", ".join(["(%s, %s)"] * len(gone))
        return Statement(
            f"DELETE FROM {self.name} WHERE instance_id = %s AND (field, value) IN (VALUES {marks})",  # noqa: S608  # names are the model's
            [
                self._param(self.fields["instance"], process),
                *(part for one in gone for part in one),
            ],
            Touched(self.table, "keys", frozenset((process, *one) for one in gone)),
        )


def outside_id_rows(process: UUID, ids: Iterable[Identifier]) -> Iterable[OutsideId]:
    """Return new rows of a process."""
    return (OutsideId(instance_id=process, field=f, value=v) for f, v in ids)
