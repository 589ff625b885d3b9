"""The index of search has words, terms and times in one; built while messages are written."""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations

from inspector.threads.rendering.terms import Spans


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("threads", "0039_fewer_columns_and_indexes")]

    operations = [
        AddIndexConcurrently("message", GinIndex("words", "atoms", Spans(), name="message_search")),
    ]
