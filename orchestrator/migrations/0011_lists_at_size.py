from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0010_failed_events"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(model_name="incident", name="open_incidents"),
        migrations.RemoveIndex(model_name="processinstance", name="live_instances"),
        migrations.RemoveIndex(model_name="processinstance", name="instances_by_owner"),
        migrations.RemoveIndex(model_name="processinstance", name="instances_by_key"),
        migrations.AddIndex(
            model_name="inboxevent",
            index=models.Index(
                condition=models.Q(
                    (
                        "verdict__in",
                        ["parked", "unrouted", "unexpected", "rejected", "failed"],
                    )
                ),
                fields=["verdict", "-id"],
                name="kept_newest_first",
            ),
        ),
        migrations.AddIndex(
            model_name="incident",
            index=models.Index(
                condition=models.Q(("resolved_at__isnull", True)),
                fields=["-id"],
                name="open_incidents",
            ),
        ),
        migrations.AddIndex(
            model_name="processinstance",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", True)),
                fields=["name", "status", "-id"],
                name="live_instances",
            ),
        ),
        migrations.AddIndex(
            model_name="processinstance",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", True)),
                fields=["status", "-id"],
                name="live_by_status",
            ),
        ),
        migrations.AddIndex(
            model_name="processinstance",
            index=models.Index(
                condition=models.Q(("status", "cancelled")),
                fields=["-id"],
                name="cancelled_instances",
            ),
        ),
        migrations.AddIndex(
            model_name="processinstance",
            index=models.Index(
                condition=models.Q(
                    ("escalation_level__gt", 0), ("finished_at__isnull", True)
                ),
                fields=["-id"],
                name="escalated_instances",
            ),
        ),
        migrations.AddIndex(
            model_name="processinstance",
            index=models.Index(
                condition=models.Q(("owner__isnull", False)),
                fields=["owner", "-id"],
                name="instances_by_owner",
            ),
        ),
        migrations.AddIndex(
            model_name="processinstance",
            index=models.Index(
                condition=models.Q(("correlation_key", ""), _negated=True),
                fields=["correlation_key", "name"],
                name="instances_by_key",
                opclasses=["varchar_pattern_ops", "varchar_ops"],
            ),
        ),
        migrations.AddIndex(
            model_name="steprun",
            index=models.Index(
                condition=models.Q(("finished_at__isnull", True), ("kind", "ask")),
                fields=["id"],
                name="open_questions",
            ),
        ),
        migrations.AddIndex(
            model_name="steprun",
            index=models.Index(
                condition=models.Q(
                    ("finished_at__isnull", True), ("item__isnull", True)
                ),
                fields=["node", "-instance"],
                name="open_visits",
            ),
        ),
    ]
