"""The order of a list by one of its columns, where few enough match that all of them can be looked at."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model

from monitoring.queries.columns import with_times
from monitoring.queries.instances.arm import LOOKED_AT
from monitoring.queries.instances.filters import Filters

MOST = LOOKED_AT - 1
"""So many are sorted: as many as are looked at for one page."""

FIELDS = {"since": "in_step_since", "changed": "changed_at"}
"""What columns are of, where that has another name."""


def ranked(filters: Filters) -> list[UUID] | None:
    """The keys of all that match in the order of a column, those that have nothing there last.

    Returns:
        None where the list is not sorted by a column, or more match than are sorted.
    """
    if not filters.column:
        return None
    values: dict[UUID, Any] = {}
    for arm in filters.arms():
        rows, edge = arm.newest(MOST + 1)
        if edge is not None:
            return None
        values |= dict(with_times(rows).values_list("pk", _field(filters.column)))
        if len(values) > MOST:
            return None
    blank = [pk for pk, value in values.items() if value in (None, "")]
    rest = sorted(values.keys() - set(blank), key=lambda pk: (values[pk], pk))
    return [*(reversed(rest) if filters.sort.startswith("-") else rest), *sorted(blank)]


def _field(column: str) -> str:
    if column == "owner":
        return f"owner__{get_user_model().USERNAME_FIELD}"
    return FIELDS.get(column, column)
