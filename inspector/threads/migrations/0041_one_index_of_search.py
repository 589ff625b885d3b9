"""The two indexes that the new one replaces. Apart from it: interrupted, this can be taken up again."""

from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("threads", "0040_times_of_words")]

    operations = [
        RemoveIndexConcurrently("message", "message_words"),
        RemoveIndexConcurrently("message", "message_atoms"),
    ]
