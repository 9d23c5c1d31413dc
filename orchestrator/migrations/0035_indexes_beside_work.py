from django.db import migrations, models

from orchestrator.migrations._operations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # an index is built concurrently outside of a transaction

    dependencies = [("orchestrator", "0034_clock_set_back")]

    operations = [
        AddIndexConcurrently(
            model_name="issuedcommand",
            index=models.Index(
                condition=models.Q(
                    ("wake_at__isnull", False), models.Q(("line", ""), _negated=True)
                ),
                fields=["type", "line", "issued_at", "id"],
                name="reactions_in_line",
            ),
        ),
        AddIndexConcurrently(
            model_name="steprun",
            index=models.Index(
                condition=models.Q(("owner", ""), ("wake_at__isnull", False)),
                fields=["queue", "definition", "status", "wake_at", "id"],
                name="due_by_definition",
            ),
        ),
        AddIndexConcurrently(
            model_name="incident",
            index=models.Index(
                condition=models.Q(("resolved_at__isnull", True)),
                fields=["earlier", "-id"],
                name="open_incidents_by_earlier",
            ),
        ),
    ]
