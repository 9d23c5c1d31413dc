"""The columns of the list of processes, and the choice of columns in an address."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import DateTimeField, OuterRef, Subquery
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from monitoring.queries.activity import open_visits
from orchestrator.models.process_instance import ProcessInstanceQuerySet

COLUMNS: dict[str, Promise] = {
    "summary": _("Summary"),
    "step": _("Step"),
    "since": _("In the step"),
    "started": _("Started"),
    "changed": _("Last change"),
    "owner": _("Owner"),
}
"""The columns beside status and process, in the order of the table."""

USUAL = ("summary", "step", "since", "changed", "owner")
"""The columns of an address that chooses none."""


@dataclass(frozen=True)
class Column:
    """One column that can be chosen, or one order by a column.

    Args:
        name: in the address.
        label: above it.
        chosen: whether it is shown.
    """

    name: str
    label: Promise | str
    chosen: bool


def column_choices(text: str) -> list[Column]:
    """Return all columns, and whether an address chooses each; unknown names are ignored.

    Args:
        text: comma-separated names; "" for the usual columns, "-" for none.
    """
    names = USUAL if not text else text.split(",")
    return [Column(name, label, name in names) for name, label in COLUMNS.items()]


def format_columns(names: Iterable[str]) -> str:
    """Return the text that chooses some columns in an address."""
    known = [name for name in COLUMNS if name in set(names)]
    return "" if tuple(known) == USUAL else ",".join(known) or "-"


def with_times(rows: ProcessInstanceQuerySet) -> Any:
    """Annotate each process with the start of its visit to the current step, if any."""
    visits = open_visits().filter(node=OuterRef("step"), instance=OuterRef("pk"))
    since = Subquery(visits.values("started_at")[:1], output_field=DateTimeField())
    return rows.annotate(in_step_since=since)
