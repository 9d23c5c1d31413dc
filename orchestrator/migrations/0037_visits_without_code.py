from django.db import migrations, models

from orchestrator.migrations._operations import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # an index is built concurrently outside of a transaction

    dependencies = [("orchestrator", "0036_code_missing")]

    operations = [
        AddIndexConcurrently(
            model_name="incident",
            index=models.Index(
                condition=models.Q(
                    ("kind", "handler_missing"),
                    ("resolved_at__isnull", True),
                    ("step_run__isnull", False),
                ),
                fields=["step_run"],
                name="visits_without_code",
            ),
        ),
    ]
