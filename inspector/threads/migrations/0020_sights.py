"""Messages and tasks that a rule may have to look at: indexes that hold them, and the ids of a conversation's messages.

What messages show that are stored already is not known: it is decided when their conversations are examined next.
"""

from django.db import migrations, models

STANDING = ("open", "acknowledged", "in-progress", "waiting", "delegated")
IS_NAMED = ~models.Q(requester="") | ~models.Q(performer="")
UNHEARD = (
    models.Q(request__isnull=False)
    & models.Q(state__in=STANDING)
    & models.Q(is_answered=False)
    & (models.Q(act="delegate") | (models.Q(act__in=("request", "query"), deadline_at__isnull=True) & IS_NAMED))
)
OVERDUE = (
    models.Q(request__isnull=False)
    & models.Q(deadline_at__isnull=False)
    & (
        models.Q(finished_at__gt=models.F("deadline_at"))
        | (models.Q(finished_at__isnull=True) & models.Q(state__in=STANDING))
    )
)


class Migration(migrations.Migration):
    dependencies = [("threads", "0019_carries")]

    operations = [
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                fields=["workspace", "channel", "id_key", "conversation"],
                name="message_by_its_id",
                condition=models.Q(id_key__isnull=False),
            ),
        ),
        migrations.RemoveIndex(model_name="message", name="message_by_id"),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                fields=["conversation", "order_time", "order_source", "order_index"],
                name="message_in_sight",
                condition=~models.Q(sights=1)
                | models.Q(parent_key__isnull=False, parent__isnull=True)
                | models.Q(parent_why__contains="circle")
                | models.Q(parent_why__startswith="it names itself"),
            ),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                fields=["conversation", "first_at", "key"],
                name="task_remarkable",
                condition=UNHEARD
                | OVERDUE
                | models.Q(failures__gt=0)
                | models.Q(steps__contains='"refused"')
                | models.Q(steps__contains='"asked-again"')
                | models.Q(request__isnull=True, is_received=False)
                | (
                    models.Q(request__isnull=False)
                    & models.Q(state="cancelled", last_at__gt=models.F("finished_at"))
                )
                | (models.Q(request__isnull=False) & models.Q(act="delegate")),
            ),
        ),
    ]
