from typing import Any

from django.db import migrations, models, transaction
from django.db.models import OuterRef, Q, Subquery

from orchestrator.configuration.migration_limits import unlimited_waits
from orchestrator.migrations._operations import (
    AddIndexConcurrently,
    RemoveIndexConcurrently,
)

CHUNK = 1_000

LIVE = Q(("finished_at__isnull", True))
ESCALATED = Q(("escalation_level__gt", 0), ("finished_at__isnull", True))
OWNED = Q(("owner__isnull", False))
IN_STEP = Q(
    ("finished_at__isnull", True),
    ("item__isnull", True),
    Q(("kind", "join"), _negated=True),
)

PROCESSES = {
    "newest_instances": ([], None),
    "starts_of_name": (["name"], None),
    "live_of_name": (["name", "status"], LIVE),
    "live_of_status": (["status"], LIVE),
    "live_of_definition": (["definition", "status"], LIVE),
    "newest_cancelled": ([], Q(("status", "cancelled"))),
    "newest_escalated": ([], ESCALATED),
    "newest_of_parent": (["parent"], Q(("parent__isnull", False))),
    "newest_of_owner": (["owner"], OWNED),
    "live_of_owner": (["owner"], LIVE & OWNED),
}
"""The indexes by start and id: the fields before, and the condition."""

REPLACED = [
    "instances_by_name",
    "live_instances",
    "live_by_status",
    "live_by_definition",
    "cancelled_instances",
    "escalated_instances",
    "instances_by_parent",
    "instances_by_owner",
    "live_by_owner",
]


def fill_starts(apps: Any, editor: Any) -> None:
    """Set the starts of rows of earlier releases; of visits only the open ones, which lists read."""
    fill(apps, editor, "StepRun", finished_at=None, item=None)
    fill(apps, editor, "OutsideId")


def fill(apps: Any, editor: Any, name: str, **which: Any) -> None:
    db = editor.connection.alias
    of = apps.get_model("orchestrator", "ProcessInstance").objects.using(db)
    start = Subquery(of.filter(pk=OuterRef("instance")).values("started_at")[:1])
    table = apps.get_model("orchestrator", name).objects.using(db)
    wrong = table.exclude(process_started_at=start)
    rows, last = table.filter(**which).order_by("pk"), 0
    while some := [*rows.filter(pk__gt=last).values_list("pk", flat=True)[:CHUNK]]:
        # A worker may hold several rows and wait for another one: this waits for a row only while it holds none.
        with transaction.atomic(using=db):
            free = table.filter(pk__in=some).select_for_update(skip_locked=True)
            keys = [*free.values_list("pk", flat=True)]
            wrong.filter(pk__in=keys).update(process_started_at=start)
        with unlimited_waits(editor.connection):
            for key in {*some} - {*keys}:
                wrong.filter(pk=key).update(process_started_at=start)
        last = some[-1]


def index(name: str, fields: list[str], condition: Q | None) -> models.Index:
    return models.Index(name=name, fields=fields, condition=condition)


class Migration(migrations.Migration):
    atomic = False  # an index is built concurrently outside of a transaction

    dependencies = [("orchestrator", "0040_starts_of_processes")]

    operations = [
        migrations.RunPython(fill_starts, migrations.RunPython.noop),
        *(
            AddIndexConcurrently(
                "processinstance",
                index(name, [*fields, "-started_at", "-id"], condition),
            )
            for name, (fields, condition) in PROCESSES.items()
        ),
        AddIndexConcurrently(
            "steprun",
            index(
                "open_visits_of_step",
                ["node", "-process_started_at", "-instance"],
                IN_STEP,
            ),
        ),
        AddIndexConcurrently(
            "outsideid",
            index(
                "newest_by_outside_id",
                ["value", "-process_started_at", "-instance"],
                None,
            ),
        ),
        *(RemoveIndexConcurrently("processinstance", name) for name in REPLACED),
        RemoveIndexConcurrently("steprun", "open_visits"),
        RemoveIndexConcurrently("outsideid", "processes_by_outside_id"),
    ]
