"""The processes: what a lock or a claim reads of one is small, however large the input of its workflow is.

The data of a process manager is what its next event is decided with, and is read with the row. A workflow's is its
input: it never changes, is kept by whoever has read it (`inputs`), and so is read only when it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import DEFAULT_DB_ALIAS

from orchestrator.engine.storage.table import Table
from orchestrator.models import ProcessInstance


class InstanceTable(Table[ProcessInstance]):
    """The statements of the processes."""

    def __init__(self) -> None:
        super().__init__(ProcessInstance)
        self._data = self.attnames.index("data")
        self._others = [name for name in self.attnames if name != "data"]

    @property
    def _listed(self) -> str:
        """Without the data where steps are open, which only a live workflow counts."""
        names = [self._column(field) for field in self.columns]
        names[self._data] = f"CASE WHEN open_steps = 0 THEN {names[self._data]} END"
        return ", ".join(names)

    def _object(self, row: Sequence[Any]) -> ProcessInstance:
        if row[self._data] is not None:
            return super()._object(row)
        values = self._values(row)
        del values[self._data]
        return self.model.from_db(DEFAULT_DB_ALIAS, self._others, values)
