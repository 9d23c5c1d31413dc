"""Actions make their own permissions; processes can be paused; the mark "handled", which nothing used, is gone."""

from typing import Any

from django.db import migrations, models
from django.utils import timezone


def let_go_on(apps: Any, editor: Any) -> None:
    """Give paused processes back their due times and a status, before the columns go that say what was left."""
    using, now = editor.connection.alias, timezone.now()
    for name in ("StepRun", "InboxEvent"):
        rows = apps.get_model("orchestrator", name).objects.using(using)
        for row in rows.exclude(remaining=None).only("remaining").iterator(500):
            rows.filter(pk=row.pk).update(wake_at=now + row.remaining)
    processes = apps.get_model("orchestrator", "ProcessInstance").objects.using(using)
    for process in processes.exclude(paused_at=None).iterator(500):
        statuses = set(
            process.step_runs.filter(finished_at=None).values_list("status", flat=True)
        )
        told = process.incidents.filter(resolved_at=None).exists()
        failed = "failed" in statuses or told
        order = ("retrying", "running", "ready")
        found = next((one for one in order if one in statuses), "waiting")
        status = "failed" if failed else "running" if found == "ready" else found
        processes.filter(pk=process.pk).update(status=status)


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0002_step_run_columns")]

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
        migrations.RemoveField(model_name="incident", name="handled_at"),
        migrations.RemoveField(model_name="incident", name="handled_by"),
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
        migrations.RunPython(migrations.RunPython.noop, let_go_on),
    ]
