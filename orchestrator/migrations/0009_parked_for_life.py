"""Events are parked as long as their process lives: what was given up before that is kept and offered again."""

from typing import Any

from django.db import migrations, models
from django.db.models import Count, Exists, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone


def keep_again(apps: Any, editor: Any) -> None:
    """Park what was unexpected while its process lives, and offer what is unrouted to a process that lives."""
    using, now = editor.connection.alias, timezone.now()
    events = apps.get_model("orchestrator", "InboxEvent").objects.using(using)
    processes = apps.get_model("orchestrator", "ProcessInstance").objects.using(using)
    live = processes.filter(finished_at=None)
    goes_on = Exists(live.filter(pk=OuterRef("process_id"), paused_at=None))
    stands_still = Exists(live.filter(pk=OuterRef("process_id")))

    stranded = events.filter(verdict="unexpected")
    stranded.filter(goes_on).update(verdict="parked", wake_at=now, handled_at=None)
    stranded.filter(stands_still).update(verdict="parked")
    parked = events.filter(verdict="parked")
    parked.filter(goes_on, wake_at__lte=now).update(handled_at=None)

    key = {"name": OuterRef("target"), "correlation_key": OuterRef("correlation_key")}
    keyed = live.filter(**key).exclude(correlation_key="")
    again = {"wake_at": now, "attempt": 0, "owner": ""}
    unrouted = events.filter(verdict="unrouted")
    unrouted.update(**again)
    unrouted.filter(Exists(keyed), process=None).update(
        process_id=Subquery(keyed.values("pk")[:1])
    )
    unrouted.filter(stands_still).update(verdict="received", patience_until=None)

    events.filter(verdict="received").update(handled_at=None)
    counts = parked.filter(process=OuterRef("pk")).order_by().values("process")
    number = Coalesce(Subquery(counts.annotate(n=Count("pk")).values("n")), 0)
    counted = live.filter(
        Q(parked__gt=0) | Exists(parked.filter(process=OuterRef("pk")))
    )
    counted.update(parked=number)


def give_up_again(apps: Any, editor: Any) -> None:
    """Show as unexpected or as unrouted what the former version would not look at again."""
    using, now = editor.connection.alias, timezone.now()
    events = apps.get_model("orchestrator", "InboxEvent").objects.using(using)
    overdue = events.filter(verdict="parked", patience_until__lte=now)
    overdue.update(verdict="unexpected", wake_at=None, owner="", handled_at=now)


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0008_follow_ups")]

    operations = [
        migrations.RunPython(keep_again, give_up_again),
        migrations.RemoveIndex(model_name="inboxevent", name="pending_of_process"),
        migrations.AddIndex(
            model_name="inboxevent",
            index=models.Index(
                condition=Q(wake_at__isnull=False, handled_at__isnull=True),
                fields=["process", "id"],
                name="undecided_of_process",
            ),
        ),
        migrations.AddIndex(
            model_name="inboxevent",
            index=models.Index(
                condition=Q(wake_at__isnull=False, handled_at__isnull=True)
                & ~Q(correlation_key=""),
                fields=["target", "correlation_key", "id"],
                name="undecided_of_key",
            ),
        ),
        migrations.AddIndex(
            model_name="inboxevent",
            index=models.Index(
                condition=Q(verdict="parked"),
                fields=["process", "type", "id"],
                name="parked_of_process",
            ),
        ),
    ]
