"""The indexes of search hold each word and each exact term with its workspace; built while messages are written."""

import django.contrib.postgres.indexes
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models

# The last three bytes of the workspace's id in base 64 begin each entry: `inspector.search.apart` asks for them.
_MARK = "encode(substring(uuid_send(workspace) FROM 14), 'base64')"
_FUNCTIONS = f"""
CREATE OR REPLACE FUNCTION words_of_workspace(workspace uuid, words tsvector) RETURNS tsvector
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 200
    AS $$ SELECT array_to_tsvector(ARRAY(SELECT {_MARK} || word FROM unnest(tsvector_to_array(words)) AS word)) $$;
CREATE OR REPLACE FUNCTION terms_of_workspace(workspace uuid, terms text[]) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 200
    AS $$ SELECT ARRAY(SELECT {_MARK} || term FROM unnest(terms) AS term) $$;
"""  # noqa: S608
_DROPPED = """
DROP FUNCTION words_of_workspace(uuid, tsvector);
DROP FUNCTION terms_of_workspace(uuid, text[]);
"""


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("threads", "0033_blocks")]

    operations = [
        migrations.RunSQL(_FUNCTIONS, _DROPPED),
        AddIndexConcurrently(
            model_name="message",
            index=django.contrib.postgres.indexes.GinIndex(
                models.Func("workspace", "words", function="words_of_workspace"), name="message_workspace_words"
            ),
        ),
        AddIndexConcurrently(
            model_name="message",
            index=django.contrib.postgres.indexes.GinIndex(
                models.Func("workspace", "atoms", function="terms_of_workspace"), name="message_workspace_terms"
            ),
        ),
        # Without statistics of the new indexes the planner would take any word for a rare one.
        migrations.RunSQL("ANALYZE threads_message", migrations.RunSQL.noop),
        RemoveIndexConcurrently(model_name="message", name="message_words"),
        RemoveIndexConcurrently(model_name="message", name="message_atoms"),
    ]
