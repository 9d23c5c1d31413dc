from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("orchestrator", "0007_failed_children")]

    operations = [
        migrations.AddField(
            model_name="issuedcommand",
            name="follow_ups",
            field=models.PositiveIntegerField(
                blank=True,
                editable=False,
                null=True,
                verbose_name="events that it caused",
            ),
        )
    ]
