"""What lets a trace go back: several points of each, where there was one. They are made anew as traces are drawn."""

import django.db.models.deletion
from django.db import migrations, models

import inspector.accounts.models


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0002_api_key_agents"),
        ("threads", "0024_shelves"),
    ]

    operations = [
        migrations.DeleteModel(name="TraceCarry"),
        migrations.CreateModel(
            name="TraceCarry",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("generation", models.BigIntegerField()),
                ("last_at", models.DateTimeField()),
                ("message_count", models.BigIntegerField()),
                ("data", models.BinaryField()),
                ("directory", models.BinaryField()),
                ("latest", models.BigIntegerField()),
                (
                    "trace",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="carries",
                        to="threads.trace",
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
        migrations.AddConstraint(
            model_name="tracecarry",
            constraint=models.UniqueConstraint(fields=("trace", "last_at"), name="trace_carry_once"),
        ),
    ]
