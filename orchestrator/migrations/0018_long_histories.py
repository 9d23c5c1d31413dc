import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0017_handled_failures")]

    operations = [
        migrations.AddIndex(
            model_name="issuedcommand",
            index=models.Index(
                condition=models.Q(("status__in", ["failed", "retrying"])),
                fields=["instance"],
                name="failing_commands",
            ),
        ),
        migrations.AddIndex(
            model_name="steprun",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", True)),
                fields=["instance", "finished_at"],
                name="open_visits_of_process",
            ),
        ),
        migrations.AddIndex(
            model_name="steprun",
            index=models.Index(
                fields=["instance", "item", "started_at", "id"], name="visits_by_start"
            ),
        ),
        # Only now is the index of the foreign key one too many.
        migrations.AlterField(
            model_name="steprun",
            name="instance",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="step_runs",
                to="orchestrator.processinstance",
            ),
        ),
    ]
