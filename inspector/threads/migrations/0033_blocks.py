"""Conversations are resolved by blocks, facts and reads; what was carried over their ends is dropped.

Where messages stand is known to the new table from the one that it replaces, so that nothing on a page changes. The
first message that comes to a conversation of several blocks resolves all of it once.
"""

import django.db.models.deletion
from django.db import migrations, models

# A directory held the key of each block (36 bytes) and how many messages it has (4 bytes).
FILL = """
INSERT INTO threads_block (conversation_id, workspace_id, border, is_forced, count, generation, form, is_stale,
                           is_linked, summary)
SELECT held.conversation_id, held.workspace_id, substring(held.blocks FROM at * 40 + 1 FOR 36), false,
       ('x' || encode(substring(held.blocks FROM at * 40 + 37 FOR 4), 'hex'))::bit(32)::int, 0, '', false, false, ''
  FROM threads_placedirectory AS held
 CROSS JOIN LATERAL generate_series(0, length(held.blocks) / 40 - 1) AS at
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_archived_workspaces"),
        ("threads", "0032_trees_walked"),
    ]

    operations = [
        migrations.CreateModel(
            name="Block",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("border", models.BinaryField(max_length=36)),
                ("order_time", models.DateTimeField(null=True)),
                ("order_source", models.BinaryField(max_length=32, null=True)),
                ("order_index", models.BigIntegerField(null=True)),
                ("is_forced", models.BooleanField(default=False)),
                ("count", models.IntegerField(default=0)),
                ("generation", models.BigIntegerField(default=0)),
                ("form", models.CharField(blank=True, max_length=64)),
                ("is_stale", models.BooleanField(default=False)),
                ("is_linked", models.BooleanField(default=False)),
                ("summary", models.TextField(blank=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="blocks",
                        to="threads.conversation",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, to="accounts.workspace"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Fact",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.BinaryField(max_length=16)),
                ("border", models.BinaryField(max_length=36)),
                ("value", models.BinaryField()),
                ("extra", models.BinaryField(null=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="threads.conversation",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Read",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.BinaryField(max_length=16)),
                ("border", models.BinaryField(max_length=36)),
                ("reached", models.BinaryField(max_length=36)),
                (
                    "conversation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="threads.conversation",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="block",
            constraint=models.UniqueConstraint(fields=("conversation", "border"), name="block_once"),
        ),
        migrations.AddIndex(
            model_name="fact",
            index=models.Index(fields=["conversation", "border"], name="fact_of_block"),
        ),
        migrations.AddConstraint(
            model_name="fact",
            constraint=models.UniqueConstraint(fields=("conversation", "key", "border"), name="fact_once"),
        ),
        migrations.AddIndex(
            model_name="read",
            index=models.Index(fields=["conversation", "border"], name="read_of_block"),
        ),
        migrations.AddConstraint(
            model_name="read",
            constraint=models.UniqueConstraint(fields=("conversation", "key", "border"), name="read_once"),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.RemoveField(
            model_name="lack",
            name="conversation",
        ),
        migrations.RemoveField(
            model_name="lack",
            name="workspace",
        ),
        migrations.RemoveField(
            model_name="placedirectory",
            name="conversation",
        ),
        migrations.RemoveField(
            model_name="placedirectory",
            name="workspace",
        ),
        migrations.RemoveField(
            model_name="shelvedname",
            name="conversation",
        ),
        migrations.RemoveField(
            model_name="shelvedname",
            name="workspace",
        ),
        migrations.RemoveField(
            model_name="stretch",
            name="conversation",
        ),
        migrations.RemoveField(
            model_name="stretch",
            name="workspace",
        ),
        migrations.DeleteModel(
            name="Carry",
        ),
        migrations.DeleteModel(
            name="Lack",
        ),
        migrations.DeleteModel(
            name="PlaceDirectory",
        ),
        migrations.DeleteModel(
            name="ShelvedName",
        ),
        migrations.DeleteModel(
            name="Stretch",
        ),
    ]
