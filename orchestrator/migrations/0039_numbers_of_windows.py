from django.db import migrations, models

from orchestrator.migrations._operations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # an index is built concurrently outside of a transaction

    dependencies = [("orchestrator", "0038_stored_definitions")]

    operations = [
        AddIndexConcurrently(
            model_name="steprun",
            index=models.Index(
                condition=models.Q(
                    ("finished_at__isnull", False), ("item__isnull", True)
                ),
                fields=["stored_definition", "finished_at"],
                name="ended_visits",
            ),
        ),
        AddIndexConcurrently(
            model_name="incident",
            index=models.Index(
                condition=models.Q(("step", ""), _negated=True),
                fields=["stored_definition", "opened_at"],
                name="failures_of_definition",
            ),
        ),
        AddIndexConcurrently(
            model_name="inboxevent",
            index=models.Index(fields=["type", "received_at"], name="received_by_type"),
        ),
    ]
