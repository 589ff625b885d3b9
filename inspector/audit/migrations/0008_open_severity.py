"""The gravest open finding of each conversation that has one, as it stands when the column comes."""

from django.db import migrations

FILL = """
UPDATE "threads_conversation" SET "open_severity" = "open"."severity" FROM (
    SELECT "conversation_id", MAX("severity") AS "severity" FROM "audit_finding"
     WHERE "holds" AND NOT "is_suppressed" AND "state" = 'open' AND ("due_at" IS NULL OR "due_since" IS NOT NULL)
     GROUP BY "conversation_id"
) "open" WHERE "threads_conversation"."id" = "open"."conversation_id"
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0007_due_since"), ("threads", "0018_open_severity")]

    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
