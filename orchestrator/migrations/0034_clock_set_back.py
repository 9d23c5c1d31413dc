from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0033_earlier_fingerprints"),
    ]

    operations = [
        migrations.AddField(
            model_name="worker",
            name="set_back_at",
            field=models.DateTimeField(
                editable=False, null=True, verbose_name="clock went back at"
            ),
        ),
        migrations.AddField(
            model_name="worker",
            name="set_back_from",
            field=models.DateTimeField(
                editable=False, null=True, verbose_name="clock went back from"
            ),
        ),
    ]
