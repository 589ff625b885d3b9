"""Places that do not count: a late message moves its neighbours alone. Each timeline begins as one block.

What is there keeps its order: the old position becomes the rank within that one block, until settling cuts it anew.
"""

import django.db.models.deletion
from django.db import migrations, models

# A key of 36 zeros, and the rank in four bytes.
PLACES = """
UPDATE threads_message SET place = decode(repeat('00', 36) || lpad(to_hex(position), 8, '0'), 'hex')
WHERE position >= 0;
UPDATE threads_task SET place = decode(repeat('00', 36) || lpad(to_hex(position), 8, '0'), 'hex')
WHERE position >= 0;
INSERT INTO threads_placedirectory (conversation_id, workspace_id, blocks)
SELECT id, workspace_id, decode(repeat('00', 36) || lpad(to_hex(message_count), 8, '0'), 'hex')
FROM threads_conversation WHERE last_at IS NOT NULL;
UPDATE threads_conversation SET tally = '' WHERE tally <> '';
"""


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
        ('threads', '0012_announcements'),
    ]

    operations = [
        migrations.CreateModel(
            name='PlaceDirectory',
            fields=[
                ('conversation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='places', serialize=False, to='threads.conversation')),
                ('blocks', models.BinaryField()),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
        ),
        migrations.AddField(
            model_name='message',
            name='place',
            field=models.BinaryField(max_length=40, null=True),
        ),
        migrations.AddField(
            model_name='task',
            name='place',
            field=models.BinaryField(default=bytes, max_length=40),
        ),
        migrations.RunSQL(PLACES, migrations.RunSQL.noop, elidable=True),
        migrations.RemoveIndex(model_name='message', name='message_position'),
        migrations.RemoveIndex(model_name='task', name='task_in_order'),
        migrations.RemoveField(model_name='message', name='position'),
        migrations.RemoveField(model_name='task', name='position'),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(fields=['conversation', 'place'], name='message_place'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(fields=['conversation', 'place', 'id'], name='task_in_order'),
        ),
    ]
