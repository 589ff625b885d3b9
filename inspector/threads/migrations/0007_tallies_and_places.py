"""What settling counts of a conversation for its page, and an index of its messages by their place."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
        ('intake', '0004_trace_jobs'),
        ('threads', '0006_agents'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='tally',
            field=models.TextField(blank=True),
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(fields=['conversation', 'position'], name='message_position'),
        ),
    ]
