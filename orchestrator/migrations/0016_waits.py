from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0015_audit_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="steprun",
            name="extended",
            field=models.DurationField(
                blank=True,
                null=True,
                verbose_name="by how much people have put off its deadlines",
            ),
        ),
        migrations.AddField(
            model_name="occurrence",
            name="recipients",
            field=models.JSONField(blank=True, default=list, verbose_name="recipients"),
        ),
        migrations.AddIndex(
            model_name="steprun",
            index=models.Index(
                condition=models.Q(
                    ("finished_at__isnull", True),
                    ("item__isnull", True),
                    ("status__in", ["waiting", "retrying"]),
                    models.Q(("kind", "join"), _negated=True),
                ),
                fields=["wake_at", "started_at", "id"],
                name="open_waits",
            ),
        ),
        migrations.AddIndex(
            model_name="processinstance",
            index=models.Index(
                condition=models.Q(
                    ("finished_at__isnull", True), ("owner__isnull", False)
                ),
                fields=["owner", "-id"],
                name="live_by_owner",
            ),
        ),
    ]
