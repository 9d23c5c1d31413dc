"""The outside ids of processes: written with the data that has them, where a definition declares any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from orchestrator.definition.outside_ids import MOST, Identifier, identifiers
from orchestrator.definition.process_definition import ProcessDefinition
from orchestrator.engine.storage.batch import Statement, Touched
from orchestrator.engine.storage.table import Table
from orchestrator.models import OutsideId

MOST_FIELDS = 50
"""Fields whose ids are read of one process: no definition has so many."""


class OutsideIdTable(Table[OutsideId]):
    """The statements of the outside ids."""

    def __init__(self) -> None:
        super().__init__(OutsideId)

    def changed(
        self,
        definition: type[ProcessDefinition],
        process: UUID,
        was: Mapping[str, Any],
        now: Mapping[str, Any],
    ) -> list[Statement]:
        """What makes those of a process agree with its data; nothing where they do.

        Args:
            definition: says which fields they are.
            process: the process id.
            was: its stored data; empty where there was none.
            now: its new data.
        """
        if not definition.outside_ids:
            return []
        before = identifiers(definition.outside_ids, was)
        return self._replaced(process, before, identifiers(definition.outside_ids, now))

    def renewed(
        self,
        process: UUID,
        definition: type[ProcessDefinition],
        now: Mapping[str, Any],
    ) -> list[Statement]:
        """The same where other fields may be outside ids than before: what is stored is asked of the table.

        Args:
            process: the process id.
            definition: says which fields they are now.
            now: its data.
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
        return [*removal, *self.inserts(list(rows_of(process, new)))]

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


def rows_of(process: UUID, ids: Iterable[Identifier]) -> Iterable[OutsideId]:
    """New rows of a process."""
    return (OutsideId(instance_id=process, field=f, value=v) for f, v in ids)
