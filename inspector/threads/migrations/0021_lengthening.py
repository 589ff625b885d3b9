"""What lets a trace take in what is appended to it: what has changed since it was drawn, and what it carries on."""

import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # The table of messages is large, and agents go on sending meanwhile.
    atomic = False

    dependencies = [
        ("accounts", "0002_api_key_agents"),
        ("threads", "0020_sights"),
    ]

    operations = [
        migrations.AddField(
            model_name="trace",
            name="whole_generation",
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="trace",
            name="fresh_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name="TraceCarry",
            fields=[
                (
                    "trace",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="carry",
                        serialize=False,
                        to="threads.trace",
                    ),
                ),
                ("generation", models.BigIntegerField()),
                ("data", models.BinaryField()),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, to="accounts.workspace"
                    ),
                ),
            ],
        ),
        AddIndexConcurrently(
            model_name="message",
            index=models.Index(
                condition=models.Q(("trace_key__isnull", False)),
                fields=["workspace", "trace_key", "order_time"],
                name="message_of_trace",
            ),
        ),
        RemoveIndexConcurrently(model_name="message", name="message_by_trace"),
    ]
