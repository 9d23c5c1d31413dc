from datetime import timedelta

from django.db import migrations
from django.utils import timezone


def tell(apps, editor):
    """Have the steps look at their sub-processes that have failed: until now they waited without being told."""
    model = apps.get_model("orchestrator", "StepRun")
    runs = model.objects.using(editor.connection.alias)
    waiting = runs.filter(finished_at=None, status="waiting", wake_at=None)
    untold = waiting.filter(child__status="failed", child__finished_at=None)
    for run in untold.select_related("instance").only("instance__paused_at"):
        if run.instance.paused_at is None:
            runs.filter(pk=run.pk).update(wake_at=timezone.now())
        else:
            runs.filter(pk=run.pk).update(remaining=timedelta(0))


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0006_sleeping_steps")]

    operations = [migrations.RunPython(tell, migrations.RunPython.noop)]
