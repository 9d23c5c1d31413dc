from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0035_indexes_beside_work"),
    ]

    operations = [
        migrations.AlterField(
            model_name="failuregroup",
            name="kind",
            field=models.CharField(
                choices=[
                    ("event_failed", "event could not be handled"),
                    ("command_failed", "command failed"),
                    ("deadline_failed", "deadline could not be handled"),
                    ("step_failed", "step failed"),
                    ("unexpected_event", "unexpected event"),
                    ("rejected_event", "rejected event"),
                    ("unrouted_event", "event without a process"),
                    ("handler_missing", "code missing"),
                    ("corrupted_data", "corrupted data"),
                ],
                max_length=20,
                verbose_name="kind",
            ),
        ),
        migrations.AlterField(
            model_name="incident",
            name="kind",
            field=models.CharField(
                choices=[
                    ("event_failed", "event could not be handled"),
                    ("command_failed", "command failed"),
                    ("deadline_failed", "deadline could not be handled"),
                    ("step_failed", "step failed"),
                    ("unexpected_event", "unexpected event"),
                    ("rejected_event", "rejected event"),
                    ("unrouted_event", "event without a process"),
                    ("handler_missing", "code missing"),
                    ("corrupted_data", "corrupted data"),
                ],
                max_length=20,
                verbose_name="kind",
            ),
        ),
    ]
