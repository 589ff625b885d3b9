from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("intake", "0001_squashed_0008_alert_jobs"),
    ]

    operations = [
        migrations.AddField(
            model_name="job",
            name="claimed_at",
            field=models.DateTimeField(null=True),
        ),
    ]
