from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # The index is built beside those who write.
    atomic = False

    dependencies = [('intake', '0022_object_store')]

    operations = [
        AddIndexConcurrently(
            'record',
            models.Index(
                fields=['workspace', 'channel', 'likeness'], name='record_equal', condition=models.Q(rule=2)
            ),
        ),
        RemoveIndexConcurrently('record', 'record_likeness'),
    ]
