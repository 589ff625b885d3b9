"""Each word and each exact term of the messages begins with its workspace; written while messages are read."""

from django.db import connection, migrations

_AT_ONCE = 2000
# The last three bytes of the workspace's id in base 64, as `inspector.threads.telling.marks` has it.
_MARK = "encode(substring(uuid_send(workspace_id) FROM 14), 'base64')"
# Until now the workspace was one more word, and one more term. Words have neither spaces nor quotation marks. So many
# of them that they have no room with their places and the mark are kept without their places.
_BARE = "ts_delete(words, '~' || workspace_id)"
_STAMP = f"""
UPDATE threads_message
   SET words = replace(
           ' ' || (CASE WHEN pg_column_size(words) < 400000 AND length(words) < 60000
                        THEN {_BARE} ELSE strip({_BARE}) END)::text,
           ' ''', ' ''' || {_MARK})::tsvector,
       atoms = ARRAY(SELECT {_MARK} || atom FROM unnest(atoms) AS atom WHERE atom <> '~' || workspace_id)
 WHERE id = ANY(%s) AND atoms @> ARRAY['~' || workspace_id]
"""  # noqa: S608


def stamp(apps, schema_editor):
    last = None
    while True:
        with connection.cursor() as cursor:
            after = "" if last is None else "WHERE id > %s"
            cursor.execute(
                f"SELECT id FROM threads_message {after} ORDER BY id LIMIT {_AT_ONCE}",  # noqa: S608
                [] if last is None else [last],
            )
            ids = [each for (each,) in cursor.fetchall()]
            if not ids:
                return
            cursor.execute(_STAMP, [ids])
            last = ids[-1]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("threads", "0033_blocks")]

    operations = [migrations.RunPython(stamp)]
