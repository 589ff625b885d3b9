"""Agents, what auditors said of them, and who said how much to whom in each conversation."""

import django.db.models.deletion
import django.utils.timezone
import inspector.accounts.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
        ('threads', '0005_traces'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Agent',
            fields=[
                ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ('name', models.TextField()),
                ('name_key', models.BinaryField(max_length=32)),
                ('friendly_name', models.CharField(blank=True, max_length=80)),
                ('friendly_key', models.BinaryField(max_length=32, null=True)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='accounts.channel')),
                ('same_as', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='aliases', to='threads.agent')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='AgentWord',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('name', 'Named'), ('same', 'Joined')], max_length=8)),
                ('friendly_name', models.CharField(blank=True, max_length=80)),
                ('reason', models.TextField(blank=True, max_length=2000)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('undone_at', models.DateTimeField(blank=True, null=True)),
                ('agent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='words', to='threads.agent')),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('same_as', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='words_of_others', to='threads.agent')),
                ('undone_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='Appearance',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('dialect', models.CharField(max_length=32)),
                ('sent', models.BigIntegerField()),
                ('received', models.BigIntegerField()),
                ('failures', models.BigIntegerField()),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='appearances', to='threads.agent')),
                ('channel', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel')),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='appearances', to='threads.conversation')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='Declaration',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message', models.UUIDField()),
                ('dialect', models.CharField(max_length=32)),
                ('kind', models.CharField(choices=[('ability', 'Ability'), ('key', 'Key'), ('more', 'More')], max_length=8)),
                ('value', models.TextField()),
                ('name', models.TextField(blank=True)),
                ('at', models.DateTimeField()),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='declarations', to='threads.agent')),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='declarations', to='threads.conversation')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='Exchange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_broadcast', models.BooleanField()),
                ('dialect', models.CharField(max_length=32)),
                ('messages', models.BigIntegerField()),
                ('failures', models.BigIntegerField()),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('channel', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel')),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='exchanges', to='threads.conversation')),
                ('receiver', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='threads.agent')),
                ('sender', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='threads.agent')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
        ),
        migrations.AddIndex(
            model_name='agent',
            index=models.Index(fields=['workspace', 'name_key'], name='agent_by_name'),
        ),
        migrations.AddIndex(
            model_name='agent',
            index=models.Index(condition=models.Q(('friendly_key__isnull', False)), fields=['workspace', 'friendly_key'], name='agent_by_friendly_name'),
        ),
        migrations.AddConstraint(
            model_name='agent',
            constraint=models.CheckConstraint(condition=models.Q(('same_as', models.F('id')), _negated=True), name='agent_same_as_another'),
        ),
        migrations.AddConstraint(
            model_name='agentword',
            constraint=models.UniqueConstraint(condition=models.Q(('undone_at__isnull', True)), fields=('agent', 'kind'), name='agent_word_in_force_once'),
        ),
        migrations.AddConstraint(
            model_name='agentword',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('undone_at__isnull', True), ('undone_by__isnull', True)), models.Q(('undone_at__isnull', False), ('undone_by__isnull', False)), _connector='OR'), name='agent_word_undone_by_someone'),
        ),
        migrations.AddIndex(
            model_name='appearance',
            index=models.Index(fields=['workspace', 'agent', 'dialect'], include=('channel', 'conversation', 'sent', 'received', 'failures', 'first_at', 'last_at'), name='appearance_by_agent'),
        ),
        migrations.AddIndex(
            model_name='declaration',
            index=models.Index(fields=['workspace', 'agent', 'kind', '-at'], name='declaration_of_agent'),
        ),
        migrations.AddIndex(
            model_name='exchange',
            index=models.Index(fields=['workspace', 'sender', 'receiver', 'dialect'], include=('channel', 'is_broadcast', 'messages', 'failures', 'first_at', 'last_at'), name='exchange_by_pair'),
        ),
        migrations.AddIndex(
            model_name='exchange',
            index=models.Index(fields=['workspace', 'receiver'], name='exchange_by_receiver'),
        ),
    ]
