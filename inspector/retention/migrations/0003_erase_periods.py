"""Periods can be erased, and what is sealed at rest is cleared by the digest that it says."""

from __future__ import annotations

from typing import Any

from django.db import connection, migrations, models
from psycopg import sql

# With the rights of the owner, so nothing is found by a path that a caller could set.
FUNCTION = """
CREATE OR REPLACE FUNCTION erase_buried(subjects uuid[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE
    cleared bigint;
BEGIN
    IF EXISTS (SELECT FROM intake_record record JOIN retention_legalhold hold ON hold.workspace_id = record.workspace_id
                WHERE record.id = ANY(subjects) AND hold.lifted_at IS NULL
                  AND coalesce(hold.channel_id, record.channel_id) = record.channel_id) THEN
        RAISE EXCEPTION 'A legal hold stops erasing' USING ERRCODE = 'insufficient_privilege';
    END IF;
    UPDATE intake_record AS record
       SET source = '', wire = NULL, envelope = '', facts = '', reason = '', sealed_with_id = NULL
      FROM retention_tombstone grave
     WHERE record.id = ANY(subjects) AND grave.kind = 'record' AND grave.subject = record.id
       AND grave.workspace_id = record.workspace_id
       AND CASE WHEN record.sealed_with_id IS NULL OR length(record.source) = 0
                THEN grave.sha256 = sha256(record.source) AND grave.size_bytes = length(record.source)
                -- A sealed value begins with the digest of what it holds, and is 60 bytes longer.
                ELSE grave.sha256 = substring(record.source FROM 1 FOR 32)
                     AND grave.size_bytes = length(record.source) - 60 END;
    GET DIAGNOSTICS cleared = ROW_COUNT;
    UPDATE audit_commentturn AS turn SET words = '' FROM retention_tombstone grave, audit_comment said
     WHERE said.id = turn.comment_id AND said.record_id = ANY(subjects)
       AND grave.kind = 'comment-turn' AND grave.subject = turn.id AND grave.workspace_id = said.workspace_id;
    RETURN cleared;
END
$$;
"""


def make_function(apps: Any, schema_editor: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        schema = cursor.fetchone()[0]
        cursor.execute(sql.SQL(FUNCTION).format(schema=sql.Identifier(schema)))


class Migration(migrations.Migration):
    dependencies = [("retention", "0002_erase_buried"), ("intake", "0021_sealed_at_rest")]
    operations = [
        migrations.AlterField(
            model_name="erasure",
            name="kind",
            field=models.CharField(
                choices=[
                    ("record", "A message"),
                    ("delivery", "A delivery"),
                    ("person", "A person"),
                    ("age", "By age"),
                    ("period", "A period"),
                ],
                max_length=8,
            ),
        ),
        migrations.RunPython(make_function, migrations.RunPython.noop),
    ]
