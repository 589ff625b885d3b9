"""The one way to clear evidence, for a role that may not change it: what has a tombstone with its digest, and no hold."""

from __future__ import annotations

from typing import Any

from django.db import connection, migrations
from psycopg import sql

# With the rights of the owner, so nothing is found by a path that a caller could set.
FUNCTION = """
CREATE FUNCTION erase_buried(subjects uuid[]) RETURNS bigint
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
       SET source = '', wire = NULL, envelope = '', facts = '', reason = ''
      FROM retention_tombstone grave
     WHERE record.id = ANY(subjects) AND grave.kind = 'record' AND grave.subject = record.id
       AND grave.workspace_id = record.workspace_id
       AND grave.sha256 = sha256(record.source) AND grave.size_bytes = length(record.source);
    GET DIAGNOSTICS cleared = ROW_COUNT;
    UPDATE audit_commentturn AS turn SET words = '' FROM retention_tombstone grave, audit_comment said
     WHERE said.id = turn.comment_id AND said.record_id = ANY(subjects)
       AND grave.kind = 'comment-turn' AND grave.subject = turn.id AND grave.workspace_id = said.workspace_id;
    RETURN cleared;
END
$$;
REVOKE ALL ON FUNCTION erase_buried(uuid[]) FROM PUBLIC;
"""


def make_function(apps: Any, schema_editor: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        schema = cursor.fetchone()[0]
        cursor.execute(sql.SQL(FUNCTION).format(schema=sql.Identifier(schema)))


def drop_function(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute("DROP FUNCTION erase_buried(uuid[])")


class Migration(migrations.Migration):
    dependencies = [
        ("retention", "0001_retention"),
        ("intake", "0019_erase_job"),
        ("audit", "0011_fewer_checks_and_indexes"),
    ]
    operations = [migrations.RunPython(make_function, drop_function)]
