"""What placing and telling keep of each message: its links, the context it was told in, what it established."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("threads", "0001_initial")]

    operations = [
        migrations.AddField("message", "links", models.TextField(blank=True, default=""), preserve_default=False),
        migrations.AddField("message", "told_in", models.TextField(blank=True, default=""), preserve_default=False),
        migrations.AddField("message", "established", models.TextField(blank=True, default=""), preserve_default=False),
    ]
