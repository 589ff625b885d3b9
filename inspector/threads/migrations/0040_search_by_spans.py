"""One index of search in place of two, which knows of times too; built while messages are written."""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations

from inspector.threads.rendering.spans import Spans


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("threads", "0039_fewer_columns_and_indexes")]

    operations = [
        AddIndexConcurrently("message", GinIndex("words", "atoms", Spans(), name="message_search")),
        RemoveIndexConcurrently("message", "message_words"),
        RemoveIndexConcurrently("message", "message_atoms"),
    ]
