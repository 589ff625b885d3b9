"""An Idempotency-Key belongs to the API key that sent it; the index is built beside running writers."""

from django.conf import settings
from django.db import migrations, models

FIELDS = ["workspace", "sent_by_key", "idempotency_key"]
NAME = "delivery_idempotency_of_key"


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("intake", "0009_claimed_at"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    [
                        f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}",
                        f"CREATE UNIQUE INDEX CONCURRENTLY {NAME} ON intake_delivery "
                        "(workspace_id, sent_by_key_id, idempotency_key)",
                        f"ALTER TABLE intake_delivery ADD CONSTRAINT {NAME} UNIQUE USING INDEX {NAME}",
                    ],
                    f"ALTER TABLE intake_delivery DROP CONSTRAINT {NAME}",
                ),
            ],
            state_operations=[
                migrations.AddConstraint("delivery", models.UniqueConstraint(fields=FIELDS, name=NAME)),
            ],
        ),
        migrations.RemoveConstraint("delivery", "delivery_idempotency_once"),
    ]
