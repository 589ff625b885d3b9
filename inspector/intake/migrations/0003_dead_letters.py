import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import inspector.accounts.models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("intake", "0002_withdrawals_and_facts"),
    ]

    operations = [
        migrations.AddField(
            model_name="delivery",
            name="set_aside",
            field=models.BigIntegerField(default=0),
        ),
        migrations.CreateModel(
            name="DeadLetter",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "To be tried again"), ("dead", "Given up"), ("read", "Read after all")],
                        default="waiting",
                        max_length=16,
                    ),
                ),
                ("attempts", models.SmallIntegerField(default=0)),
                ("failure", models.TextField(blank=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("updated_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("asked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "asked_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "delivery",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="dead_letters", to="intake.delivery"
                    ),
                ),
                (
                    "record",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="dead_letters", to="intake.record"
                    ),
                ),
                (
                    "sighting",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="dead_letter", to="intake.sighting"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="accounts.workspace"),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "read"), _negated=True),
                        fields=["workspace", "-created_at", "-id"],
                        name="letter_open",
                    ),
                    models.Index(
                        condition=models.Q(("state", "waiting")), fields=["delivery"], name="letter_waiting"
                    ),
                ],
            },
        ),
    ]
