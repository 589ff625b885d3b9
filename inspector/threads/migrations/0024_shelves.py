"""What conversations have established long ago, each name in a row of its own."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_api_key_agents"),
        ("threads", "0022_milestones"),
    ]

    operations = [
        migrations.CreateModel(
            name="ShelvedName",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("question", models.BinaryField(max_length=12)),
                ("since", models.BigIntegerField()),
                ("said", models.TextField()),
                (
                    "conversation",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
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
            options={
                "indexes": [models.Index(fields=["conversation", "since"], name="shelved_since")],
                "constraints": [
                    models.UniqueConstraint(fields=("conversation", "question", "since"), name="shelved_once")
                ],
            },
        ),
    ]
