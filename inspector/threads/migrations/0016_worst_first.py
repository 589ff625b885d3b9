"""Conversations with the gravest notes first: an index that serves the list."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("threads", "0001_squashed_0015_totals")]

    operations = [
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(fields=["workspace", "-severity", "-last_at", "-id"], name="conversation_worst"),
        ),
    ]
