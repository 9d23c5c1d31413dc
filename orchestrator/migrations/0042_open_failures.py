from django.db import migrations, models

from orchestrator.migrations._operations import AddIndexConcurrently

OPEN_FAILURES = models.Q(
    ("resolved_at__isnull", True),
    models.Q(
        ("instance__isnull", True),
        ("kind__in", ("unexpected_event", "unrouted_event")),
        _negated=True,
    ),
)
"""The open incidents but those about events that no process took."""


class Migration(migrations.Migration):
    atomic = False  # an index is built concurrently outside of a transaction

    dependencies = [("orchestrator", "0041_newest_first")]

    operations = [
        AddIndexConcurrently(
            model_name="incident",
            index=models.Index(
                condition=OPEN_FAILURES, fields=["-id"], name="open_failures"
            ),
        ),
        AddIndexConcurrently(
            model_name="incident",
            index=models.Index(
                condition=OPEN_FAILURES,
                fields=["fingerprint", "-id"],
                name="open_failures_by_cause",
            ),
        ),
    ]
