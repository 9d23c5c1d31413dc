"""What stood in the texts `error` and `blocked_on` of step runs has columns of its own."""

from typing import Any

from django.db import migrations, models

UNDONE_LATER = "(undone when it is over)"


def fill(apps: Any, editor: Any) -> None:
    """Read the columns of visits that are not over, and of those that a failure has cancelled, out of their texts."""
    model = apps.get_model("orchestrator", "StepRun")
    runs = model.objects.using(editor.connection.alias)
    undone_later = runs.filter(blocked_on=UNDONE_LATER)
    undone_later.update(blocked="undoing", blocked_on="")
    held = runs.exclude(blocked_on="")
    held.filter(finished_at=None).update(blocked="redo")
    held.exclude(finished_at=None).update(blocked="failure")
    troubled = runs.filter(finished_at=None).exclude(error="")
    troubled.filter(error__startswith="TimedOut").update(lost="timed_out")
    troubled.filter(error__startswith="WorkerDied").update(lost="died")
    for times in range(1, 6):
        given_back = troubled.filter(error__startswith=f"Refused {times}:")
        given_back.update(given_back=times)


def put_back(apps: Any, editor: Any) -> None:
    """Say in the text again which visits come to their end and are undone then; the errors have stayed as they were."""
    model = apps.get_model("orchestrator", "StepRun")
    runs = model.objects.using(editor.connection.alias)
    runs.filter(blocked="undoing").update(blocked_on=UNDONE_LATER)


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="steprun",
            name="blocked",
            field=models.CharField(
                blank=True,
                choices=[
                    ("redo", "waits for the redo of a step"),
                    ("failure", "cancelled because a step failed"),
                    ("undoing", "comes to its end and is undone then"),
                ],
                default="",
                max_length=8,
                verbose_name="blocked",
            ),
        ),
        migrations.AddField(
            model_name="steprun",
            name="given_back",
            field=models.PositiveSmallIntegerField(
                default=0, verbose_name="times given back in this attempt"
            ),
        ),
        migrations.AddField(
            model_name="steprun",
            name="lost",
            field=models.CharField(
                blank=True,
                choices=[
                    (
                        "timed_out",
                        "it ran longer than it may, or did not report in time",
                    ),
                    ("died", "the worker died or was killed"),
                ],
                default="",
                max_length=10,
                verbose_name="worker lost",
            ),
        ),
        migrations.AlterField(
            model_name="steprun",
            name="blocked_on",
            field=models.CharField(
                blank=True, max_length=100, verbose_name="blocked on step"
            ),
        ),
        migrations.RunPython(fill, put_back),
    ]
