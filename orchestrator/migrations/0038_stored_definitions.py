import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0037_visits_without_code")]

    operations = [
        migrations.AddField(
            model_name=name,
            name="stored_definition",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="orchestrator.definition",
            ),
        )
        for name in ("steprun", "incident")
    ]
