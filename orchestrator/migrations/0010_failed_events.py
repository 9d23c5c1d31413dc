from datetime import timedelta

from django.db import migrations
from django.db.models import Exists, OuterRef
from django.utils import timezone


def tell(apps, editor):
    """Show the workflows as failed for which an event could not be delivered, and have the steps look that run them."""
    using = editor.connection.alias
    events = apps.get_model("orchestrator", "InboxEvent").objects.using(using)
    processes = apps.get_model("orchestrator", "ProcessInstance").objects.using(using)
    runs = apps.get_model("orchestrator", "StepRun").objects.using(using)
    failed = events.filter(verdict="failed")
    workflows = processes.filter(finished_at=None, definition__kind="workflow")
    of_event = workflows.filter(Exists(failed.filter(process=OuterRef("pk"))))
    of_event.filter(paused_at=None).update(status="failed")
    waiting = runs.filter(finished_at=None, status="waiting", wake_at=None)
    untold = waiting.filter(child__in=of_event.values("pk"))
    untold.filter(instance__paused_at=None).update(wake_at=timezone.now())
    untold.exclude(instance__paused_at=None).update(remaining=timedelta(0))


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0009_parked_for_life")]

    operations = [migrations.RunPython(tell, migrations.RunPython.noop)]
