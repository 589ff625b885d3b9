"""What lets settling find the messages of a task, and what is part of it, without going through its conversation."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("threads", "0027_stretches"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="message",
            index=models.Index(condition=models.Q(("task__isnull", False)), fields=["task"], name="message_of_task"),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("within_key__isnull", False)),
                fields=["conversation", "within_key"],
                name="task_within",
            ),
        ),
    ]
