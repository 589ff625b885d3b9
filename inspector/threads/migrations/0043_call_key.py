from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # Its index is built beside those who write.
    atomic = False

    dependencies = [('threads', '0001_squashed_0042_carriers')]

    operations = [
        migrations.AddField('message', 'call_key', models.BinaryField(max_length=33, null=True)),
        AddIndexConcurrently(
            'message',
            models.Index(
                fields=['channel', 'call_key'],
                name='message_by_its_call',
                condition=models.Q(call_key__isnull=False),
            ),
        ),
    ]
