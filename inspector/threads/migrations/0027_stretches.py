"""Stretches of long conversations; and shelves by place, where they went by count. Both are made anew as they settle."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

def _name_owners(related_name):
    return [
        (
            "conversation",
            models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name=related_name,
                to="threads.conversation",
            ),
        ),
        (
            "workspace",
            models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to="accounts.workspace"),
        ),
    ]


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_api_key_agents"),
        ("threads", "0026_trace_changes"),
    ]

    operations = [
        migrations.DeleteModel(name="ShelvedName"),
        migrations.CreateModel(
            name="ShelvedName",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("question", models.BinaryField(max_length=12)),
                ("since", models.BinaryField(max_length=40)),
                ("said", models.TextField()),
                *_name_owners("+"),
            ],
        ),
        migrations.AddConstraint(
            model_name="shelvedname",
            constraint=models.UniqueConstraint(fields=("conversation", "question", "since"), name="shelved_once"),
        ),
        migrations.AddIndex(
            model_name="shelvedname",
            index=models.Index(fields=["conversation", "since"], name="shelved_since"),
        ),
        migrations.CreateModel(
            name="Stretch",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("border", models.BinaryField(max_length=40)),
                ("state", models.BinaryField()),
                ("reads", django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None)),
                ("depths", models.BinaryField()),
                *_name_owners("stretches"),
            ],
        ),
        migrations.AddConstraint(
            model_name="stretch",
            constraint=models.UniqueConstraint(fields=("conversation", "border"), name="stretch_once"),
        ),
        migrations.AddIndex(
            model_name="stretch",
            index=django.contrib.postgres.indexes.GinIndex(fields=["reads"], name="stretch_reads"),
        ),
        migrations.CreateModel(
            name="Lack",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("border", models.BinaryField(max_length=40)),
                ("keys", models.BinaryField()),
                *_name_owners("lacks"),
            ],
        ),
        migrations.AddIndex(
            model_name="lack",
            index=models.Index(fields=["conversation", "border"], name="lack_from"),
        ),
    ]
