"""What keys have opened of sealed messages, which the database deletes together with its key or its message."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


BIND = """
ALTER TABLE threads_openedmessage
    ADD CONSTRAINT opened_message_of_message FOREIGN KEY (message_id) REFERENCES threads_message (id) ON DELETE CASCADE,
    ADD CONSTRAINT opened_message_of_key FOREIGN KEY (key_id) REFERENCES keyring_escrowedkey (id) ON DELETE CASCADE;
ALTER TABLE threads_openingtrial
    ADD CONSTRAINT opening_trial_of_message FOREIGN KEY (message_id) REFERENCES threads_message (id) ON DELETE CASCADE;
"""
LET_GO = """
ALTER TABLE threads_openingtrial DROP CONSTRAINT opening_trial_of_message;
ALTER TABLE threads_openedmessage DROP CONSTRAINT opened_message_of_key, DROP CONSTRAINT opened_message_of_message;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
        ('intake', '0005_opening_jobs'),
        ('keyring', '0001_keys_and_their_trace'),
        ('threads', '0007_tallies_and_places'),
    ]

    operations = [
        migrations.CreateModel(
            name='OpenedMessage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sealed', models.BinaryField()),
                ('told_digest', models.BinaryField(max_length=32)),
                ('opened_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name='OpeningTrial',
            fields=[
                ('message', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='trial', serialize=False, to='threads.message')),
                ('digest', models.BinaryField(max_length=16)),
            ],
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(condition=models.Q(('is_sealed', True)), fields=['workspace', 'conversation'], name='message_sealed'),
        ),
        migrations.AddField(
            model_name='openedmessage',
            name='key',
            field=models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='opened_messages', to='keyring.escrowedkey'),
        ),
        migrations.AddField(
            model_name='openedmessage',
            name='message',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='openings', to='threads.message'),
        ),
        migrations.AddField(
            model_name='openedmessage',
            name='workspace',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AddConstraint(
            model_name='openedmessage',
            constraint=models.UniqueConstraint(fields=('message', 'key'), name='opened_message_once'),
        ),
        migrations.RunSQL(BIND, LET_GO),
    ]
