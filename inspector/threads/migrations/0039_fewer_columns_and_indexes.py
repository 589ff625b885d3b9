"""Columns of tasks that nothing reads go, and what indexes say twice: a channel is of one workspace.

A task's id follows from its conversation and its key, so that both need no index of their own.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0007_sign_in_pace"),
        ("intake", "0014_job_labels"),
        ("threads", "0038_exchanges_alone"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="task",
            name="task_once",
        ),
        migrations.RemoveIndex(
            model_name="message",
            name="message_ghosts",
        ),
        migrations.RemoveIndex(
            model_name="message",
            name="message_by_its_id",
        ),
        migrations.RemoveIndex(
            model_name="message",
            name="message_newest_of_channel",
        ),
        migrations.RemoveIndex(
            model_name="task",
            name="task_of_request",
        ),
        migrations.RemoveIndex(
            model_name="task",
            name="task_within",
        ),
        migrations.RemoveIndex(
            model_name="task",
            name="task_remarkable",
        ),
        migrations.RemoveField(
            model_name="task",
            name="digest",
        ),
        migrations.RemoveField(
            model_name="task",
            name="ending",
        ),
        migrations.RemoveField(
            model_name="task",
            name="ends",
        ),
        migrations.RemoveField(
            model_name="task",
            name="is_received",
        ),
        migrations.RemoveField(
            model_name="task",
            name="mode",
        ),
        migrations.AlterField(
            model_name="treegroup",
            name="conversation",
            field=models.ForeignKey(
                db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, to="threads.conversation"
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(fields=["channel", "-order_time", "-id"], name="message_newest_of_channel"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("id_key__isnull", False)),
                fields=["channel", "id_key", "conversation"],
                name="message_by_its_id",
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("parent_key__isnull", False)),
                fields=["channel", "parent_key"],
                name="message_ghosts",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(
                    models.Q(
                        ("request__isnull", False),
                        ("state__in", ("open", "acknowledged", "in-progress", "waiting", "delegated")),
                        ("is_answered", False),
                        models.Q(
                            ("act", "delegate"),
                            models.Q(
                                ("act__in", ("request", "query")),
                                ("deadline_at__isnull", True),
                                models.Q(
                                    models.Q(("requester", ""), _negated=True),
                                    models.Q(("performer", ""), _negated=True),
                                    _connector="OR",
                                ),
                            ),
                            _connector="OR",
                        ),
                    ),
                    models.Q(
                        ("request__isnull", False),
                        ("deadline_at__isnull", False),
                        models.Q(
                            ("finished_at__gt", models.F("deadline_at")),
                            models.Q(
                                ("finished_at__isnull", True),
                                ("state__in", ("open", "acknowledged", "in-progress", "waiting", "delegated")),
                            ),
                            _connector="OR",
                        ),
                    ),
                    ("failures__gt", 0),
                    ("steps__contains", '"refused"'),
                    ("steps__contains", '"asked-again"'),
                    ("request__isnull", True),
                    models.Q(
                        ("request__isnull", False), ("last_at__gt", models.F("finished_at")), ("state", "cancelled")
                    ),
                    models.Q(
                        ("request__isnull", False), ("act__in", ("query", "propose")), ("within_key__isnull", False)
                    ),
                    models.Q(("request__isnull", False), ("act", "delegate")),
                    _connector="OR",
                ),
                fields=["conversation", "first_at", "key"],
                name="task_remarkable",
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("request__isnull", False)), fields=["request"], name="task_of_request"
            ),
        ),
    ]
