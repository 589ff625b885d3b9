"""The latest record of a channel: an index that serves it, for what stands still and what falls due."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("threads", "0016_worst_first")]

    operations = [
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(fields=["workspace", "channel", "-last_at", "-id"], name="conversation_of_channel"),
        ),
    ]
