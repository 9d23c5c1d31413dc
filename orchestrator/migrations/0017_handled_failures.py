import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0016_waits"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="FailureMark",
            fields=[
                (
                    "fingerprint",
                    models.CharField(
                        max_length=64,
                        primary_key=True,
                        serialize=False,
                        verbose_name="cause fingerprint",
                    ),
                ),
                (
                    "handled_at",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="handled at"
                    ),
                ),
                (
                    "handled_by",
                    models.CharField(
                        blank=True, max_length=150, verbose_name="handled by"
                    ),
                ),
                ("note", models.TextField(blank=True, verbose_name="note")),
                (
                    "until",
                    models.DateTimeField(
                        blank=True, null=True, verbose_name="handled until"
                    ),
                ),
                (
                    "last",
                    models.BigIntegerField(
                        blank=True, null=True, verbose_name="newest incident seen"
                    ),
                ),
                (
                    "revision",
                    models.PositiveIntegerField(default=0, verbose_name="revision"),
                ),
                ("changed_at", models.DateTimeField(verbose_name="changed at")),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "mark of a group of failures",
                "verbose_name_plural": "marks of groups of failures",
                "indexes": [
                    models.Index(
                        condition=models.Q(("handled_at__isnull", False)),
                        fields=["fingerprint"],
                        name="handled_failures",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(
                condition=models.Q(("resolved_at__isnull", False)),
                fields=["-resolved_at", "-id"],
                name="resolved_incidents",
            ),
        ),
        migrations.AddField(
            model_name="bulkoperation",
            name="items_removed_at",
            field=models.DateTimeField(
                blank=True, null=True, verbose_name="items removed at"
            ),
        ),
    ]
