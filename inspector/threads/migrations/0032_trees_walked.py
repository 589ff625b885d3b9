"""Trees are walked from the lines that messages stand below: no tree is stored any more.

The columns are filled and the ghosts and headings made from what is placed already, so that every tree is shown as
before. Every trace is drawn once more in the background: its parts are made then, and circles are cut that go through
several conversations.
"""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

import inspector.accounts.models

GHOST = "encode(substring(sha256({tree} || {cited}) FROM 1 FOR 16), 'hex')::uuid"
IN_CONVERSATION = GHOST.format(tree="uuid_send(own.conversation_id)", cited="own.parent_key")
IN_TRACE = GHOST.format(tree="own.trace_key || uuid_send(own.channel_id)", cited="own.parent_key")
HEADING = GHOST.format(tree="own.trace_key", cited="uuid_send(own.conversation_id)")
IS_GHOST = "own.parent IS NULL AND own.parent_key IS NOT NULL AND own.parent_basis <> ''"
ORDER = "order_time, order_source, order_index, place"
OWN_ORDER = "own.order_time, own.order_source, own.order_index, own.place"

HANG = f"""
UPDATE threads_message AS message
   SET above = CASE WHEN parent.conversation_id = own.conversation_id THEN parent.id
                    WHEN {IS_GHOST} THEN {IN_CONVERSATION}
                    ELSE own.conversation_id END,
       trace_above = CASE WHEN own.trace_key IS NULL THEN NULL
                          WHEN parent.trace_key = own.trace_key THEN parent.id
                          WHEN {IS_GHOST} THEN {IN_TRACE}
                          ELSE {HEADING} END
  FROM threads_message AS own
  LEFT JOIN threads_message AS parent ON parent.id = own.parent AND own.parent_basis <> 'adjacency'
 WHERE message.id = own.id AND own.place IS NOT NULL
   AND NOT EXISTS (SELECT FROM intake_hiddenrecord AS hidden WHERE hidden.record_id = own.record_id)
"""
GHOSTS = f"""
INSERT INTO threads_treegroup (id, workspace_id, kind, conversation_id, above, {ORDER}, severity, size, is_stale, data)
SELECT DISTINCT ON (own.above) own.above, own.workspace_id, 1, own.conversation_id, own.conversation_id,
       own.order_time, own.order_source, own.order_index, own.place, 0, 0, false, ''
  FROM threads_message AS own
 WHERE own.above <> own.conversation_id AND {IS_GHOST}
 ORDER BY own.above, own.place, own.id
"""
IN_TRACES = f"""
WITH joined AS (
    SELECT DISTINCT workspace_id, trace_key, channel_id FROM threads_message
     WHERE trace_above IS NOT NULL AND trace_basis <> 'wire'
), own AS (
    SELECT own.id, own.workspace_id, own.conversation_id, own.trace_above, own.severity AS gravity, {OWN_ORDER},
           {HEADING} AS heading, {IS_GHOST} AS is_ghost, trace.id AS owner_id
      FROM threads_message AS own
      LEFT JOIN joined USING (workspace_id, trace_key, channel_id)
      JOIN threads_trace AS trace ON trace.workspace_id = own.workspace_id AND trace.key = own.trace_key
       AND trace.channel_id IS NOT DISTINCT FROM CASE WHEN joined.channel_id IS NULL THEN own.channel_id END
     WHERE own.trace_above IS NOT NULL
), first AS (
    SELECT DISTINCT ON (trace_above) * FROM own WHERE is_ghost ORDER BY trace_above, {ORDER}, id
), ghost AS (
    INSERT INTO threads_treegroup (id, workspace_id, kind, trace_id, above, {ORDER}, severity, size, is_stale, data)
    SELECT trace_above, workspace_id, 1, owner_id, heading, {ORDER}, 0, 0, false, '' FROM first
), span AS (
    SELECT heading, min(order_time) AS first_at, max(order_time) AS last_at, max(gravity) AS severity
      FROM own GROUP BY heading
), top AS (
    SELECT DISTINCT ON (heading) * FROM (
        SELECT * FROM own WHERE trace_above = heading UNION ALL SELECT * FROM first
    ) AS top ORDER BY heading, {ORDER}, id
)
INSERT INTO threads_treegroup
    (id, workspace_id, kind, trace_id, conversation_id, above, {ORDER}, first_at, last_at, severity, size, is_stale, data)
SELECT heading, workspace_id, 2, owner_id, conversation_id, owner_id, {ORDER}, span.first_at, span.last_at,
       span.severity, 0, false, ''
  FROM top JOIN span USING (heading)
"""
DRAW = """
WITH drawn AS (
    UPDATE threads_trace SET generation = generation + 1 RETURNING id, workspace_id
)
INSERT INTO intake_job AS job (id, workspace_id, kind, subject, state, requests, attempts, due_at, checkpoint, failure,
                               created_at, updated_at)
SELECT gen_random_uuid(), workspace_id, 'trace', id, 'queued', 1, 0, now(), '{}', '', now(), now()
  FROM drawn ORDER BY id
ON CONFLICT (kind, subject) DO UPDATE
   SET requests = job.requests + 1, attempts = 0, updated_at = now(),
       state = CASE WHEN job.state IN ('done', 'dead') THEN 'queued' ELSE job.state END
"""


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("threads", "0031_asked_back"), ("intake", "0012_delivery_warnings")]

    operations = [
        migrations.CreateModel(
            name="TreeGroup",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("kind", models.SmallIntegerField(choices=[(1, "ghost"), (2, "heading"), (3, "part")])),
                ("above", models.UUIDField(null=True)),
                ("order_time", models.DateTimeField()),
                ("order_source", models.BinaryField(default=bytes, max_length=32)),
                ("order_index", models.BigIntegerField(default=0)),
                ("place", models.BinaryField(default=bytes, max_length=40)),
                ("first_at", models.DateTimeField(null=True)),
                ("last_at", models.DateTimeField(null=True)),
                ("severity", models.SmallIntegerField(default=0)),
                ("size", models.IntegerField(default=0)),
                ("is_stale", models.BooleanField(default=False)),
                ("data", models.TextField(blank=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, to="threads.conversation"
                    ),
                ),
                (
                    "trace",
                    models.ForeignKey(
                        db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, to="threads.trace"
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_index=False, on_delete=django.db.models.deletion.CASCADE, to="accounts.workspace"
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["above", "order_time", "order_source", "order_index", "place", "id"],
                        name="tree_group_in_order",
                        condition=models.Q(above__isnull=False),
                    ),
                    models.Index(
                        fields=["trace", "kind", "order_time"],
                        name="tree_group_of_trace",
                        condition=models.Q(trace__isnull=False),
                    ),
                ],
            },
        ),
        migrations.AddField("message", "above", models.UUIDField(null=True)),
        migrations.AddField("message", "trace_above", models.UUIDField(null=True)),
        *(
            migrations.AddField(
                "trace",
                name,
                django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None),
            )
            for name in ("channels", "cut")
        ),
        migrations.RunSQL(HANG, migrations.RunSQL.noop, elidable=True),
        migrations.RunSQL(GHOSTS, migrations.RunSQL.noop, elidable=True),
        migrations.RunSQL(IN_TRACES, migrations.RunSQL.noop, elidable=True),
        migrations.RunSQL(DRAW, migrations.RunSQL.noop, elidable=True),
        AddIndexConcurrently(
            "message",
            models.Index(
                fields=["above", "place", "id"], name="message_above", condition=models.Q(above__isnull=False)
            ),
        ),
        AddIndexConcurrently(
            "message",
            models.Index(
                fields=["trace_above", "order_time", "order_source", "order_index", "place", "id"],
                name="message_trace_above",
                condition=models.Q(trace_above__isnull=False),
            ),
        ),
        migrations.RemoveField("carry", "directory"),
        migrations.RemoveField("carry", "latest"),
        migrations.RemoveField("trace", "fresh_at"),
        migrations.RemoveField("trace", "whole_generation"),
        migrations.DeleteModel("OutlineBlock"),
        migrations.DeleteModel("Outline"),
        migrations.DeleteModel("TraceCarry"),
        migrations.DeleteModel("TraceChange"),
    ]
