import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0039_numbers_of_windows")]

    operations = [
        migrations.AddField(
            model_name=name,
            name="process_started_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                default=None,
                editable=False,
                null=True,
                verbose_name="start of its process",
            ),
        )
        for name in ("outsideid", "steprun")  # workers write them in this order
    ]
