from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("orchestrator", "0032_claims_in_turns"),
    ]

    operations = [
        migrations.AddField(
            model_name="incident",
            name="earlier",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                max_length=64,
                verbose_name="earlier fingerprint",
            ),
        ),
    ]
