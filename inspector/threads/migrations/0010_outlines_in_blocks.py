"""The old chunks of outlines go; every conversation is settled again, and what names a trace is read again for it."""

from django.db import migrations

# Empty links are what settling reads a record again for: only its reading knows whether a trace id was the envelope's.
READ_AGAIN = "UPDATE threads_message SET links = '' WHERE trace_id <> ''"
SETTLE_AGAIN = "UPDATE threads_conversation SET generation = generation + 1"
ASK = """
    INSERT INTO intake_job AS job (id, workspace_id, kind, subject, state, requests, attempts, due_at, checkpoint,
                                   failure, created_at, updated_at)
    SELECT gen_random_uuid(), workspace_id, 'settle', id, 'queued', 1, 0, now(), '{}', '', now(), now()
      FROM threads_conversation
    ON CONFLICT (kind, subject) DO UPDATE
       SET requests = job.requests + 1, updated_at = now(),
           attempts = CASE WHEN job.state = 'running' THEN job.attempts ELSE 0 END,
           due_at = CASE WHEN job.state = 'running' THEN job.due_at ELSE now() END,
           state = CASE WHEN job.state = 'running' THEN 'running' ELSE 'queued' END
"""


class Migration(migrations.Migration):
    dependencies = [("intake", "0004_trace_jobs"), ("threads", "0009_agents_spoken_of")]

    operations = [
        migrations.RunSQL([READ_AGAIN, SETTLE_AGAIN, ASK], migrations.RunSQL.noop, elidable=True),
        migrations.DeleteModel("OutlineChunk"),
    ]
