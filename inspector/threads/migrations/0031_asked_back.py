"""Questions and proposals in the course of work are remarkable, and judgements are in sight; made while others write."""

from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
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
TURNED = (
    models.Q(failures__gt=0) | models.Q(steps__contains='"refused"') | models.Q(steps__contains='"asked-again"')
)
UNASKED = models.Q(request__isnull=True, is_received=False)
WITHDRAWN = models.Q(request__isnull=False) & models.Q(state="cancelled", last_at__gt=models.F("finished_at"))
ASKED_BACK = models.Q(request__isnull=False) & models.Q(within_key__isnull=False, act__in=("query", "propose"))
HANDED_ON = models.Q(request__isnull=False) & models.Q(act="delegate")


def undecide_judgements(apps, schema_editor):
    """What these rows show is decided when their conversations are examined next."""
    messages = apps.get_model("threads", "Message").objects
    messages.filter(performative__in=("accept", "evaluate")).exclude(sights=0).update(sights=0)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("threads", "0030_newest_of_channel")]

    operations = [
        RemoveIndexConcurrently(model_name="task", name="task_remarkable"),
        AddIndexConcurrently(
            model_name="task",
            index=models.Index(
                fields=["conversation", "first_at", "key"],
                name="task_remarkable",
                condition=UNHEARD | OVERDUE | TURNED | UNASKED | WITHDRAWN | ASKED_BACK | HANDED_ON,
            ),
        ),
        migrations.RunPython(undecide_judgements, migrations.RunPython.noop, elidable=True),
    ]
