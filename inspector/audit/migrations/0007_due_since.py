"""Findings that are a matter of time note that they have become due. Those that are due already are no news."""

from django.db import migrations, models

# What is due today was due before: it is noted as of when it was found or its moment came, whichever was later.
_NOTE = """
UPDATE "audit_finding" "finding" SET "due_since" = GREATEST("finding"."found_at", "finding"."due_at")
FROM (SELECT "channel"."id", (
          SELECT LEAST(now(), "latest"."last_at") FROM "threads_conversation" "latest"
          WHERE "latest"."workspace_id" = "channel"."workspace_id" AND "latest"."channel_id" = "channel"."id"
            AND "latest"."last_at" IS NOT NULL
          ORDER BY "latest"."last_at" DESC, "latest"."id" DESC LIMIT 1
      ) AS "at" FROM "accounts_channel" "channel") "moment"
WHERE "finding"."channel_id" = "moment"."id" AND "finding"."holds" AND "finding"."due_at" < "moment"."at"
"""
# Alerts that waited for the wall clock are told when the finding is due; what was not sent yet is announced then.
_FORGET = """
DELETE FROM "audit_alert" "alert" USING "audit_finding" "finding"
WHERE "alert"."finding_id" = "finding"."id" AND "alert"."state" = 'waiting'
  AND "finding"."due_at" IS NOT NULL AND "finding"."due_since" IS NULL
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_squashed_0006_alerts"), ("threads", "0017_moments")]

    operations = [
        migrations.AddField(model_name="finding", name="due_since", field=models.DateTimeField(null=True)),
        migrations.RunSQL(_NOTE, migrations.RunSQL.noop),
        migrations.RunSQL(_FORGET, migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name="finding",
            index=models.Index(
                fields=["workspace", "channel", "due_at"],
                name="finding_to_be_due",
                condition=models.Q(holds=True, due_at__isnull=False, due_since__isnull=True),
            ),
        ),
        migrations.AddIndex(
            model_name="finding",
            index=models.Index(
                fields=["workspace", "channel", "due_at"],
                name="finding_due",
                condition=models.Q(holds=True, due_at__isnull=False, due_since__isnull=False),
            ),
        ),
    ]
