"""The failures page: everything that needs a person now."""

from orchestrator.models import Incident

PAGE = 50


def open_incidents(before: str = "") -> tuple[list[Incident], int | None]:
    """What needs a person now, newest first, and the key of the next page."""
    rows = (
        Incident.objects.open()
        .select_related("instance__parent", "event", "command", "step_run__child")
        .defer(
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
