"""A new database gets these tables at once; one that has them came here by the migrations that this replaces."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
import inspector.accounts.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('threads', '0001_initial'), ('threads', '0002_links_and_contexts'), ('threads', '0003_wordings'), ('threads', '0004_tasks'), ('threads', '0005_traces'), ('threads', '0006_agents'), ('threads', '0007_tallies_and_places'), ('threads', '0008_opened_messages'), ('threads', '0009_agents_spoken_of'), ('threads', '0010_outlines_in_blocks'), ('threads', '0011_names_of_any_length'), ('threads', '0012_announcements'), ('threads', '0013_places'), ('threads', '0014_refused_openings'), ('threads', '0015_totals')]

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
        ('intake', '0001_squashed_0008_alert_jobs'),
        ('keyring', '0001_keys_and_their_trace'),
    ]

    operations = [
        migrations.CreateModel(
            name='Conversation',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('key', models.BinaryField(max_length=32)),
                ('native_id', models.TextField(blank=True)),
                ('title', models.TextField(blank=True)),
                ('generation', models.BigIntegerField(default=0)),
                ('settled_generation', models.BigIntegerField(default=0)),
                ('settled_at', models.DateTimeField(null=True)),
                ('settled_digest', models.BinaryField(max_length=32, null=True)),
                ('state', models.CharField(choices=[('open', 'Open'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('stalled', 'Stalled')], default='open', max_length=16)),
                ('subject', models.TextField(blank=True)),
                ('agents', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('dialects', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('message_count', models.BigIntegerField(default=0)),
                ('missing_count', models.BigIntegerField(default=0)),
                ('severity', models.SmallIntegerField(default=0)),
                ('first_at', models.DateTimeField(null=True)),
                ('last_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='accounts.channel')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
                ('stood_at', models.DateTimeField(null=True)),
                ('tally', models.TextField(blank=True)),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', '-last_at', '-id'], name='conversation_latest')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'channel', 'key'), name='conversation_once')],
            },
        ),
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('part', models.IntegerField(default=1)),
                ('order_time', models.DateTimeField()),
                ('order_basis', models.CharField(max_length=8)),
                ('order_source', models.BinaryField(max_length=32)),
                ('order_index', models.BigIntegerField()),
                ('dialect', models.CharField(max_length=32)),
                ('performative', models.CharField(max_length=24, null=True)),
                ('native_act', models.TextField(blank=True)),
                ('topic', models.TextField(blank=True)),
                ('sender', models.TextField(blank=True)),
                ('receivers', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('is_broadcast', models.BooleanField(default=False)),
                ('native_id', models.TextField(blank=True)),
                ('id_key', models.BinaryField(max_length=32, null=True)),
                ('trace_id', models.TextField(blank=True)),
                ('task_id', models.TextField(blank=True)),
                ('turn', models.BigIntegerField(null=True)),
                ('run', models.IntegerField(default=1)),
                ('status', models.TextField(blank=True)),
                ('severity', models.SmallIntegerField(choices=[(0, 'none'), (1, 'info'), (2, 'notice'), (3, 'warning'), (4, 'error')], default=0)),
                ('is_sealed', models.BooleanField(default=False)),
                ('parent_key', models.BinaryField(max_length=32, null=True)),
                ('parent', models.UUIDField(null=True)),
                ('parent_basis', models.CharField(blank=True, max_length=12)),
                ('parent_why', models.TextField(blank=True)),
                ('told_digest', models.BinaryField(max_length=32, null=True)),
                ('english', models.TextField(blank=True)),
                ('body', models.TextField(blank=True)),
                ('words', django.contrib.postgres.search.SearchVectorField(null=True)),
                ('atoms', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='accounts.channel')),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='threads.conversation')),
                ('record', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='intake.record')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
                ('links', models.TextField(blank=True)),
                ('told_in', models.TextField(blank=True)),
                ('established', models.TextField(blank=True)),
                ('told_at', models.DateTimeField(null=True)),
                ('trace_basis', models.CharField(blank=True, db_default='', max_length=8)),
                ('trace_key', models.BinaryField(max_length=32, null=True)),
                ('place', models.BinaryField(max_length=40, null=True)),
            ],
            options={
                'indexes': [models.Index(fields=['conversation', 'order_time', 'order_source', 'order_index', 'part'], name='message_in_order'), models.Index(fields=['workspace', '-order_time', '-id'], name='message_newest'), models.Index(condition=models.Q(('id_key__isnull', False)), fields=['workspace', 'channel', 'id_key'], name='message_by_id'), models.Index(condition=models.Q(('parent_key__isnull', False)), fields=['workspace', 'channel', 'parent_key'], name='message_ghosts'), django.contrib.postgres.indexes.GinIndex(fields=['words'], name='message_words'), django.contrib.postgres.indexes.GinIndex(fields=['atoms'], name='message_atoms'), models.Index(condition=models.Q(('trace_key__isnull', False)), fields=['workspace', 'trace_key', 'channel'], name='message_by_trace'), models.Index(condition=models.Q(('is_sealed', True)), fields=['workspace', 'conversation'], name='message_sealed'), models.Index(fields=['conversation', 'place'], name='message_place')],
                'constraints': [models.UniqueConstraint(fields=('record', 'part'), name='message_once')],
            },
        ),
        migrations.CreateModel(
            name='Wording',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('part', models.IntegerField()),
                ('number', models.IntegerField()),
                ('english', models.TextField(blank=True)),
                ('also', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('digest', models.BinaryField(max_length=32)),
                ('decoder', models.CharField(max_length=32)),
                ('told_in', models.TextField(blank=True)),
                ('since', models.DateTimeField()),
                ('until', models.DateTimeField()),
                ('cause', models.CharField(choices=[('late', 'A message arrived late'), ('withdrawal', 'A delivery was withdrawn'), ('return', 'A withdrawal was taken back'), ('decoder', 'The decoder changed'), ('dialect', 'Its dialect was settled otherwise'), ('moved', 'It was placed anew')], max_length=16)),
                ('because_of', models.UUIDField(null=True)),
                ('record', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='wordings', to='intake.record')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('record', 'part', 'number'), name='wording_once')],
                'indexes': [],
            },
        ),
        migrations.CreateModel(
            name='Task',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('key', models.BinaryField(max_length=32)),
                ('within_key', models.BinaryField(max_length=32, null=True)),
                ('native_id', models.TextField(blank=True)),
                ('request', models.UUIDField(null=True)),
                ('act', models.CharField(blank=True, max_length=24)),
                ('requester', models.TextField(blank=True)),
                ('performer', models.TextField(blank=True)),
                ('delegate', models.TextField(blank=True)),
                ('delegation', models.TextField(blank=True)),
                ('state', models.CharField(choices=[('open', 'Open'), ('acknowledged', 'Acknowledged'), ('in-progress', 'In progress'), ('waiting', 'Waiting'), ('delegated', 'Delegated'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('timed-out', 'Timed out'), ('stalled', 'Stalled')], default='open', max_length=16)),
                ('deadline', models.TextField(blank=True)),
                ('deadline_at', models.DateTimeField(null=True)),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('asked_at', models.DateTimeField(null=True)),
                ('acknowledged_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('acknowledge_seconds', models.FloatField(null=True)),
                ('finish_seconds', models.FloatField(null=True)),
                ('message_count', models.BigIntegerField(default=0)),
                ('retries', models.IntegerField(default=0)),
                ('failures', models.IntegerField(default=0)),
                ('is_answered', models.BooleanField(default=False)),
                ('is_received', models.BooleanField(default=True)),
                ('is_inferred', models.BooleanField(default=False)),
                ('steps', models.TextField(blank=True)),
                ('step_count', models.IntegerField(default=0)),
                ('digest', models.BinaryField(max_length=32)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='accounts.channel')),
                ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tasks', to='threads.conversation')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
                ('place', models.BinaryField(default=bytes, max_length=40)),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', 'state', '-last_at'], name='task_by_state'), models.Index(fields=['workspace', 'request'], name='task_of_request'), models.Index(models.F('workspace'), django.db.models.functions.text.Left('requester', 100), django.db.models.functions.text.Left('performer', 100), name='task_of_pair'), models.Index(models.F('workspace'), django.db.models.functions.text.Left('performer', 100), name='task_of_performer'), models.Index(fields=['conversation', 'place', 'id'], name='task_in_order')],
                'constraints': [models.UniqueConstraint(fields=('conversation', 'key'), name='task_once')],
            },
        ),
        migrations.CreateModel(
            name='Trace',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('key', models.BinaryField(max_length=32)),
                ('native_id', models.TextField()),
                ('generation', models.BigIntegerField(default=0)),
                ('settled_generation', models.BigIntegerField(default=0)),
                ('settled_at', models.DateTimeField(null=True)),
                ('digest', models.BinaryField(max_length=32, null=True)),
                ('state', models.CharField(choices=[('open', 'Open'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('stalled', 'Stalled')], default='open', max_length=16)),
                ('subject', models.TextField(blank=True)),
                ('agents', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('dialects', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('message_count', models.BigIntegerField(default=0)),
                ('conversation_count', models.BigIntegerField(default=0)),
                ('missing_count', models.BigIntegerField(default=0)),
                ('open_count', models.BigIntegerField(default=0)),
                ('severity', models.SmallIntegerField(default=0)),
                ('first_at', models.DateTimeField(null=True)),
                ('last_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('channel', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', '-last_at', '-id'], name='trace_latest')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'key', 'channel'), name='trace_once', nulls_distinct=False)],
            },
        ),
        migrations.CreateModel(
            name='Outline',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('count', models.BigIntegerField(default=0)),
                ('latest', models.BigIntegerField(default=-1)),
                ('directory', models.BinaryField(default=bytes)),
                ('conversation', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='tree', to='threads.conversation')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
                ('trace', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='tree', to='threads.trace')),
            ],
            options={
                'indexes': [],
                'constraints': [models.CheckConstraint(condition=models.Q(('conversation__isnull', True), ('trace__isnull', True), _connector='XOR'), name='outline_of_one')],
            },
        ),
        migrations.CreateModel(
            name='OutlineBlock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.BinaryField(max_length=16)),
                ('depths', models.BinaryField()),
                ('lines', models.BinaryField()),
                ('outline', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='blocks', to='threads.outline')),
            ],
            options={
                'indexes': [],
                'constraints': [models.UniqueConstraint(fields=('outline', 'digest'), name='outline_block_once')],
            },
        ),
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
            options={
                'indexes': [models.Index(fields=['workspace', 'name_key'], name='agent_by_name'), models.Index(condition=models.Q(('friendly_key__isnull', False)), fields=['workspace', 'friendly_key'], name='agent_by_friendly_name'), models.Index(condition=models.Q(('friendly_key__isnull', False), ('same_as__isnull', False), _connector='OR'), fields=['workspace', 'id'], name='agent_spoken_of')],
                'constraints': [models.CheckConstraint(condition=models.Q(('same_as', models.F('id')), _negated=True), name='agent_same_as_another')],
            },
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
            options={
                'indexes': [],
                'constraints': [models.UniqueConstraint(condition=models.Q(('undone_at__isnull', True)), fields=('agent', 'kind'), name='agent_word_in_force_once'), models.CheckConstraint(condition=models.Q(models.Q(('undone_at__isnull', True), ('undone_by__isnull', True)), models.Q(('undone_at__isnull', False), ('undone_by__isnull', False)), _connector='OR'), name='agent_word_undone_by_someone')],
            },
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
            options={
                'indexes': [models.Index(fields=['workspace', 'agent', 'dialect'], include=('channel', 'conversation', 'sent', 'received', 'failures', 'first_at', 'last_at'), name='appearance_by_agent')],
                'constraints': [],
            },
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
            options={
                'indexes': [models.Index(fields=['workspace', 'agent', 'kind', '-at'], name='declaration_of_agent')],
                'constraints': [],
            },
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
            options={
                'indexes': [models.Index(fields=['workspace', 'sender', 'receiver', 'dialect'], include=('channel', 'is_broadcast', 'messages', 'failures', 'first_at', 'last_at'), name='exchange_by_pair'), models.Index(fields=['workspace', 'receiver'], name='exchange_by_receiver')],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='OpenedMessage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sealed', models.BinaryField()),
                ('told_digest', models.BinaryField(max_length=32)),
                ('opened_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('key', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='opened_messages', to='keyring.escrowedkey')),
                ('message', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='openings', to='threads.message')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [],
                'constraints': [models.UniqueConstraint(fields=('message', 'key'), name='opened_message_once')],
            },
        ),
        migrations.CreateModel(
            name='OpeningTrial',
            fields=[
                ('message', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='trial', serialize=False, to='threads.message')),
                ('digest', models.BinaryField(max_length=16)),
                ('is_refused', models.BooleanField(default=False)),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Announcement',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('transaction', models.BigIntegerField()),
                ('at', models.DateTimeField()),
                ('messages', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', 'transaction', 'id'], name='announcement_in_order'), models.Index(fields=['at'], name='announcement_age')],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='PlaceDirectory',
            fields=[
                ('conversation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='places', serialize=False, to='threads.conversation')),
                ('blocks', models.BinaryField()),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
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
        migrations.RunSQL(
            sql='ALTER TABLE threads_outlineblock ALTER COLUMN lines SET STORAGE EXTERNAL',
            reverse_sql=migrations.RunSQL.noop,
        ),
        migrations.RunSQL(
            sql="""
ALTER TABLE threads_openedmessage
    ADD CONSTRAINT opened_message_of_message FOREIGN KEY (message_id) REFERENCES threads_message (id) ON DELETE CASCADE,
    ADD CONSTRAINT opened_message_of_key FOREIGN KEY (key_id) REFERENCES keyring_escrowedkey (id) ON DELETE CASCADE;
ALTER TABLE threads_openingtrial
    ADD CONSTRAINT opening_trial_of_message FOREIGN KEY (message_id) REFERENCES threads_message (id) ON DELETE CASCADE;
""",
            reverse_sql="""
ALTER TABLE threads_openingtrial DROP CONSTRAINT opening_trial_of_message;
ALTER TABLE threads_openedmessage DROP CONSTRAINT opened_message_of_key, DROP CONSTRAINT opened_message_of_message;
""",
        ),
    ]
