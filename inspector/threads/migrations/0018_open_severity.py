"""How grave the gravest open finding of a conversation is, and an index that serves lists beginning with it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("threads", "0017_moments")]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="open_severity",
            field=models.SmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                fields=["workspace", "-open_severity", "-last_at", "-id"], name="conversation_gravest"
            ),
        ),
    ]
