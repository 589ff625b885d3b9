"""Totals of agents and of pairs: what their small rows come to, so that no page adds them up."""

import django.db.models.deletion
from django.db import migrations, models

TOTALS = """
INSERT INTO threads_agenttotal
       (workspace_id, channel_id, agent_id, dialect, sent, received, failures, conversations, first_at, last_at)
SELECT workspace_id, channel_id, agent_id, COALESCE(dialect, ''), sum(sent), sum(received), sum(failures),
       count(DISTINCT conversation_id), min(first_at), max(last_at)
  FROM threads_appearance
 GROUP BY GROUPING SETS ((workspace_id, channel_id, agent_id, dialect), (workspace_id, channel_id, agent_id));
INSERT INTO threads_pairtotal
       (workspace_id, channel_id, sender_id, receiver_id, is_broadcast, dialect, messages, failures, first_at, last_at)
SELECT workspace_id, channel_id, sender_id, receiver_id, is_broadcast, dialect, sum(messages), sum(failures),
       min(first_at), max(last_at)
  FROM threads_exchange
 GROUP BY workspace_id, channel_id, sender_id, receiver_id, is_broadcast, dialect;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
        ('threads', '0014_refused_openings'),
    ]

    operations = [
        migrations.CreateModel(
            name='AgentTotal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('dialect', models.CharField(blank=True, max_length=32)),
                ('sent', models.BigIntegerField(default=0)),
                ('received', models.BigIntegerField(default=0)),
                ('failures', models.BigIntegerField(default=0)),
                ('conversations', models.BigIntegerField(default=0)),
                ('first_at', models.DateTimeField(null=True)),
                ('last_at', models.DateTimeField(null=True)),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='totals', to='threads.agent')),
                ('channel', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', 'dialect'], name='agent_total_of_workspace')],
                'constraints': [models.UniqueConstraint(fields=('agent', 'dialect'), name='agent_total_once')],
            },
        ),
        migrations.CreateModel(
            name='PairTotal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_broadcast', models.BooleanField()),
                ('dialect', models.CharField(max_length=32)),
                ('messages', models.BigIntegerField(default=0)),
                ('failures', models.BigIntegerField(default=0)),
                ('first_at', models.DateTimeField(null=True)),
                ('last_at', models.DateTimeField(null=True)),
                ('channel', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel')),
                ('receiver', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='threads.agent')),
                ('sender', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='threads.agent')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', 'receiver'], name='pair_total_by_receiver')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'sender', 'receiver', 'is_broadcast', 'dialect', 'channel'), name='pair_total_once', nulls_distinct=False)],
            },
        ),
        migrations.RunSQL(TOTALS, migrations.RunSQL.noop, elidable=True),
    ]
