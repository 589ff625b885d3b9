"""A message inside another has its own dialect; that of its record stands beside it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("threads", "0041_one_index_of_search")]

    operations = [
        migrations.AddField(
            model_name="message",
            name="carrier",
            field=models.CharField(blank=True, db_default="", default="", max_length=32),
        ),
    ]
