"""The failures page: what has failed, and stands until its cause is gone."""

from django.db.models import QuerySet

from monitoring.queries.counts import MANY, Capped, capped
from orchestrator.models import Incident

PAGE = 50


def open_of(definition: str = "") -> QuerySet[Incident]:
    """The open incidents; those of one definition are looked for among the newest."""
    rows = Incident.objects.open()
    if not definition:
        return rows
    newest = rows.order_by("-pk").values("pk")[:MANY]
    return rows.filter(pk__in=newest, instance__name=definition)


def number_open() -> Capped:
    """How many there are."""
    return capped(open_of())


def open_incidents(
    before: str = "", definition: str = ""
) -> tuple[list[Incident], int | None]:
    """What has failed, newest first, and the key of the next page."""
    rows = (
        open_of(definition)
        .select_related(
            "instance__parent",
            "instance__definition",
            "event",
            "command",
            "step_run__child",
        )
        .defer(
            "instance__definition__graph",
            "step_run__result",
            "step_run__element",
            "step_run__saved",
            "step_run__error",
        )
    )
    if before.isdecimal():
        rows = rows.filter(pk__lt=int(before[:18]))
    found = list(rows.order_by("-pk")[: PAGE + 1])
    return found[:PAGE], found[PAGE - 1].pk if len(found) > PAGE else None
