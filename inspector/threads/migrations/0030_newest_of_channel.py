"""What serves the search in a channel; built while messages are written."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("threads", "0029_masked_wires")]

    operations = [
        AddIndexConcurrently(
            model_name="message",
            index=models.Index(fields=["workspace", "channel", "-order_time", "-id"], name="message_newest_of_channel"),
        ),
    ]
