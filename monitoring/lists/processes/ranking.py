"""The order of a list by a column, if few enough processes match to sort them all."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model

from monitoring.lists.processes.arm import LOOKED_AT
from monitoring.lists.processes.columns import with_times
from monitoring.lists.processes.filters import Filters
from monitoring.queries.processes import ProcessPlace

MOST = LOOKED_AT - 1
"""The maximum number of sorted rows: as many as one page looks at."""

FIELDS = {"since": "in_step_since", "changed": "changed_at"}
"""The fields of columns with another name."""


def keys_by_column(filters: Filters) -> list[UUID] | None:
    """Return the keys of all matches in the order of a column, empty values last.

    Returns:
        None if the list is not sorted by a column, or if too many match.
    """
    if not filters.column:
        return None
    values: dict[ProcessPlace, Any] = {}
    for arm in filters.arms():
        part = arm.newest(MOST + 1)
        if part.edge is not None:
            return None
        columns = ("started_at", "pk", _field(filters.column))
        for *place, value in with_times(part.rows).values_list(*columns):
            values[ProcessPlace(*place)] = value
        if len(values) > MOST:
            return None
    blank = sorted(place for place, value in values.items() if value in (None, ""))
    rest = sorted(values.keys() - set(blank), key=lambda place: (values[place], place))
    ordered = [*(reversed(rest) if filters.sort.startswith("-") else rest), *blank]
    return [place.pk for place in ordered]


def _field(column: str) -> str:
    if column == "owner":
        return f"owner__{get_user_model().USERNAME_FIELD}"
    return FIELDS.get(column, column)
