import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0019_repairs")]

    operations = [
        migrations.CreateModel(
            name="OutsideId",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("field", models.CharField(max_length=100, verbose_name="field")),
                ("value", models.CharField(max_length=200, verbose_name="value")),
                (
                    "instance",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="outside_ids",
                        to="orchestrator.processinstance",
                    ),
                ),
            ],
            options={
                "verbose_name": "outside id",
                "verbose_name_plural": "outside ids",
                "indexes": [
                    models.Index(
                        fields=["value", "-instance"], name="processes_by_outside_id"
                    ),
                    models.Index(
                        fields=["instance", "field", "value"],
                        name="outside_ids_of_process",
                    ),
                ],
            },
        )
    ]
