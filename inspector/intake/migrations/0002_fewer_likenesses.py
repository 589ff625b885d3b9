from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # The index is built beside those who write.
    atomic = False

    dependencies = [('intake', '0001_squashed_0021_sealed_at_rest')]

    operations = [
        AddIndexConcurrently(
            'record',
            models.Index(
                fields=['workspace', 'channel', 'likeness'], name='record_equal', condition=models.Q(rule=2)
            ),
        ),
        RemoveIndexConcurrently('record', 'record_likeness'),
    ]
