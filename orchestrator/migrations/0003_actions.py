"""Actions make their own permissions; processes can be paused; the mark "handled", which nothing used, is gone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0002_step_run_columns"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="inboxevent",
            options={
                "permissions": [("send_inboxevent", "Can send an event")],
                "verbose_name": "event",
                "verbose_name_plural": "events",
            },
        ),
        migrations.AlterModelOptions(
            name="processinstance",
            options={
                "verbose_name": "process instance",
                "verbose_name_plural": "process instances",
            },
        ),
        migrations.RemoveField(
            model_name="incident",
            name="handled_at",
        ),
        migrations.RemoveField(
            model_name="incident",
            name="handled_by",
        ),
        migrations.AddField(
            model_name="inboxevent",
            name="remaining",
            field=models.DurationField(
                blank=True,
                null=True,
                verbose_name="left until it wakes when its process goes on",
            ),
        ),
        migrations.AddField(
            model_name="processinstance",
            name="paused_at",
            field=models.DateTimeField(blank=True, null=True, verbose_name="paused at"),
        ),
        migrations.AddField(
            model_name="steprun",
            name="remaining",
            field=models.DurationField(
                blank=True,
                null=True,
                verbose_name="left until it wakes when its process goes on",
            ),
        ),
    ]
