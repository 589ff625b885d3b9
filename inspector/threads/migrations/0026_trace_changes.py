"""What has changed of each trace since it was drawn, by message. Points are made anew as traces are drawn."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("threads", "0025_points"),
    ]

    operations = [
        # They carry more than they did, and the digest of a trace is of its messages as a set.
        migrations.RunSQL("DELETE FROM threads_tracecarry", reverse_sql=migrations.RunSQL.noop),
        migrations.CreateModel(
            name="TraceChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("message_id", models.UUIDField(null=True)),
                ("is_new", models.BooleanField()),
                ("parent", models.UUIDField(null=True)),
                ("cited", models.BinaryField(max_length=32, null=True)),
                ("is_several", models.BooleanField()),
                ("told_digest", models.BinaryField(max_length=32, null=True)),
                (
                    "trace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="changes",
                        to="threads.trace",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="tracechange",
            constraint=models.UniqueConstraint(
                fields=("trace", "message_id"), name="trace_change_once", nulls_distinct=False
            ),
        ),
    ]
