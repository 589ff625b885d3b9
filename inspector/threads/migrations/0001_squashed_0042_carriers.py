"""What a new database gets at once; one that is there came to the same by the migrations that this replaces."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import migrations, models
from django.db.models.functions import Left
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.schema import FinishTables
from inspector.threads.models.packed_text import PackedTextField
from inspector.threads.terms import Spans

# What these say goes with the message or the key, in the database itself: erasing does not read them.
GO_ALONG = """
ALTER TABLE threads_openedmessage
    ADD CONSTRAINT opened_message_of_message FOREIGN KEY (message_id) REFERENCES threads_message (id) ON DELETE CASCADE,
    ADD CONSTRAINT opened_message_of_key FOREIGN KEY (key_id) REFERENCES keyring_escrowedkey (id) ON DELETE CASCADE;
ALTER TABLE threads_openingtrial
    ADD CONSTRAINT opening_trial_of_message FOREIGN KEY (message_id) REFERENCES threads_message (id) ON DELETE CASCADE;
"""


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('threads', name)
        for name in (
            '0001_squashed_0015_totals', '0016_worst_first', '0017_moments', '0018_open_severity',
            '0019_carries', '0020_sights', '0021_lengthening', '0022_milestones', '0024_shelves', '0025_points',
            '0026_trace_changes', '0027_stretches', '0028_tasks_again', '0029_masked_wires',
            '0030_newest_of_channel', '0031_asked_back', '0032_trees_walked', '0033_blocks',
            '0034_marked_words', '0035_fewer_checks_and_indexes', '0036_changed_blocks', '0037_packed_bodies',
            '0038_exchanges_alone', '0039_fewer_columns_and_indexes', '0040_times_of_words',
            '0041_one_index_of_search', '0042_carriers',
        )
    ]

    dependencies = [
        ('accounts', '0001_squashed_0012_indexes_sealed'),
        ('intake', '0001_squashed_0021_sealed_at_rest'),
        ('keyring', '0001_squashed_0003_released_and_expiring'),
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
                ('channel', models.ForeignKey(on_delete=models.PROTECT, to='accounts.channel')),
                ('same_as', models.ForeignKey(null=True, on_delete=models.SET_NULL, related_name='aliases', to='threads.agent')),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'name_key'], name='agent_by_name'),
                    models.Index(condition=models.Q(('friendly_key__isnull', False), ('same_as__isnull', False), _connector='OR'), fields=['workspace', 'id'], name='agent_spoken_of'),
                    models.Index(condition=models.Q(('friendly_key__isnull', False)), fields=['workspace', 'friendly_key'], name='agent_by_friendly_name'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('same_as', models.F('id')), _negated=True), name='agent_same_as_another'),
                ],
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
                ('agent', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='totals', to='threads.agent')),
                ('channel', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.PROTECT, to='accounts.channel')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'dialect'], name='agent_total_of_workspace'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('agent', 'dialect'), name='agent_total_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='AgentWord',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('name', 'Named'), ('same', 'Joined')], max_length=8)),
                ('friendly_name', models.CharField(blank=True, max_length=80)),
                ('reason', models.TextField(blank=True, max_length=2000)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('undone_at', models.DateTimeField(blank=True, null=True)),
                ('agent', models.ForeignKey(on_delete=models.CASCADE, related_name='words', to='threads.agent')),
                ('by', models.ForeignKey(on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('same_as', models.ForeignKey(null=True, on_delete=models.CASCADE, related_name='words_of_others', to='threads.agent')),
                ('undone_by', models.ForeignKey(blank=True, null=True, on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('undone_at__isnull', True)), fields=('agent', 'kind'), name='agent_word_in_force_once'),
                    models.CheckConstraint(condition=models.Q(models.Q(('undone_at__isnull', True), ('undone_by__isnull', True)), models.Q(('undone_at__isnull', False), ('undone_by__isnull', False)), _connector='OR'), name='agent_word_undone_by_someone'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Announcement',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('transaction', models.BigIntegerField()),
                ('at', models.DateTimeField()),
                ('messages', ArrayField(base_field=models.UUIDField(), size=None)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'transaction', 'id'], name='announcement_in_order'),
                    models.Index(fields=['at'], name='announcement_age'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Conversation',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('key', models.BinaryField(max_length=32)),
                ('native_id', models.TextField(blank=True)),
                ('title', models.TextField(blank=True)),
                ('generation', models.BigIntegerField(default=0)),
                ('settled_generation', models.BigIntegerField(default=0)),
                ('settled_at', models.DateTimeField(null=True)),
                ('settled_digest', models.BinaryField(max_length=32, null=True)),
                ('state', models.CharField(choices=[('open', 'Open'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('stalled', 'Stalled')], default='open', max_length=16)),
                ('subject', models.TextField(blank=True)),
                ('agents', ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('dialects', ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('message_count', models.BigIntegerField(default=0)),
                ('missing_count', models.BigIntegerField(default=0)),
                ('severity', models.SmallIntegerField(default=0)),
                ('first_at', models.DateTimeField(null=True)),
                ('last_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('channel', models.ForeignKey(on_delete=models.PROTECT, to='accounts.channel')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
                ('stood_at', models.DateTimeField(null=True)),
                ('tally', models.TextField(blank=True)),
                ('open_severity', models.SmallIntegerField(db_default=0, default=0)),
                ('whole_generation', models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', '-last_at', '-id'], name='conversation_latest'),
                    models.Index(fields=['workspace', '-severity', '-last_at', '-id'], name='conversation_worst'),
                    models.Index(fields=['workspace', '-open_severity', '-last_at', '-id'], name='conversation_gravest'),
                    models.Index(fields=['workspace', 'channel', '-last_at', '-id'], name='conversation_of_channel'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'channel', 'key'), name='conversation_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Block',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('border', models.BinaryField(max_length=36)),
                ('order_time', models.DateTimeField(null=True)),
                ('order_source', models.BinaryField(max_length=32, null=True)),
                ('order_index', models.BigIntegerField(null=True)),
                ('is_forced', models.BooleanField(default=False)),
                ('count', models.IntegerField(default=0)),
                ('generation', models.BigIntegerField(default=0)),
                ('form', models.CharField(blank=True, max_length=64)),
                ('is_stale', models.BooleanField(default=False)),
                ('is_linked', models.BooleanField(default=False)),
                ('summary', models.TextField(blank=True)),
                ('conversation', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='blocks', to='threads.conversation')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
                ('changed_generation', models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('conversation', 'border'), name='block_once'),
                ],
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
                ('agent', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='declarations', to='threads.agent')),
                ('conversation', models.ForeignKey(on_delete=models.CASCADE, related_name='declarations', to='threads.conversation')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'agent', 'kind', '-at'], name='declaration_of_agent'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Exchange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_broadcast', models.BooleanField()),
                ('dialect', models.CharField(max_length=32)),
                ('messages', models.IntegerField()),
                ('failures', models.IntegerField()),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('conversation', models.ForeignKey(on_delete=models.CASCADE, related_name='exchanges', to='threads.conversation')),
                ('receiver', models.ForeignKey(db_index=False, null=True, on_delete=models.CASCADE, related_name='+', to='threads.agent')),
                ('sender', models.ForeignKey(db_index=False, null=True, on_delete=models.CASCADE, related_name='+', to='threads.agent')),
                ('sent', models.IntegerField(default=0)),
                ('failed', models.IntegerField(default=0)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['sender'], name='exchange_of_sender'),
                    models.Index(fields=['receiver'], name='exchange_of_receiver'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Fact',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.BinaryField(max_length=16)),
                ('border', models.BinaryField(max_length=36)),
                ('value', models.BinaryField()),
                ('extra', models.BinaryField(null=True)),
                ('conversation', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='+', to='threads.conversation')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['conversation', 'border'], name='fact_of_block'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('conversation', 'key', 'border'), name='fact_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='MaskedWire',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('dialect', models.CharField(max_length=32)),
                ('text', models.BinaryField()),
                ('record', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='+', to='intake.record')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('record', 'dialect'), name='masked_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Message',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
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
                ('receivers', ArrayField(base_field=models.TextField(), default=list, size=None)),
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
                ('body', PackedTextField(default='', editable=False)),
                ('words', SearchVectorField(null=True)),
                ('atoms', ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('channel', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.PROTECT, to='accounts.channel')),
                ('conversation', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='messages', to='threads.conversation')),
                ('record', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='messages', to='intake.record')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
                ('links', models.TextField(blank=True)),
                ('told_in', models.TextField(blank=True)),
                ('established', models.TextField(blank=True)),
                ('told_at', models.DateTimeField(null=True)),
                ('trace_basis', models.CharField(blank=True, db_default='', max_length=8)),
                ('trace_key', models.BinaryField(max_length=32, null=True)),
                ('place', models.BinaryField(max_length=40, null=True)),
                ('sights', models.SmallIntegerField(db_default=0, default=0)),
                ('task', models.UUIDField(null=True)),
                ('above', models.UUIDField(null=True)),
                ('trace_above', models.UUIDField(null=True)),
                ('carrier', models.CharField(blank=True, db_default='', default='', max_length=32)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['conversation', 'order_time', 'order_source', 'order_index', 'part'], name='message_in_order'),
                    models.Index(fields=['conversation', 'place'], name='message_place'),
                    models.Index(fields=['workspace', '-order_time', '-id'], name='message_newest'),
                    models.Index(fields=['channel', '-order_time', '-id'], name='message_newest_of_channel'),
                    models.Index(condition=models.Q(('id_key__isnull', False)), fields=['channel', 'id_key', 'conversation'], name='message_by_its_id'),
                    models.Index(condition=models.Q(('parent_key__isnull', False)), fields=['channel', 'parent_key'], name='message_ghosts'),
                    models.Index(condition=models.Q(('above__isnull', False)), fields=['above', 'place', 'id'], name='message_above'),
                    models.Index(condition=models.Q(('trace_above__isnull', False)), fields=['trace_above', 'order_time', 'order_source', 'order_index', 'place', 'id'], name='message_trace_above'),
                    models.Index(condition=models.Q(('trace_key__isnull', False)), fields=['workspace', 'trace_key', 'order_time'], name='message_of_trace'),
                    models.Index(condition=models.Q(('task__isnull', False)), fields=['task'], name='message_of_task'),
                    models.Index(condition=models.Q(('is_sealed', True)), fields=['workspace', 'conversation'], name='message_sealed'),
                    models.Index(condition=models.Q(models.Q(('sights', 1), _negated=True), models.Q(('parent__isnull', True), ('parent_key__isnull', False)), ('parent_why__contains', 'circle'), ('parent_why__startswith', 'it names itself'), _connector='OR'), fields=['conversation', 'order_time', 'order_source', 'order_index'], name='message_in_sight'),
                    GinIndex(models.F('words'), models.F('atoms'), Spans(), name='message_search'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('record', 'part'), name='message_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='OpenedMessage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sealed', models.BinaryField()),
                ('told_digest', models.BinaryField(max_length=32)),
                ('opened_at', models.DateTimeField(default=timezone.now)),
                ('key', models.ForeignKey(db_constraint=False, on_delete=models.DO_NOTHING, related_name='opened_messages', to='keyring.escrowedkey')),
                ('message', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.DO_NOTHING, related_name='openings', to='threads.message')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('message', 'key'), name='opened_message_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='OpeningTrial',
            fields=[
                ('message', models.OneToOneField(db_constraint=False, on_delete=models.DO_NOTHING, primary_key=True, related_name='trial', serialize=False, to='threads.message')),
                ('digest', models.BinaryField(max_length=16)),
                ('is_refused', models.BooleanField(default=False)),
            ],
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
                ('channel', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.PROTECT, to='accounts.channel')),
                ('receiver', models.ForeignKey(db_index=False, null=True, on_delete=models.CASCADE, related_name='+', to='threads.agent')),
                ('sender', models.ForeignKey(db_index=False, null=True, on_delete=models.CASCADE, related_name='+', to='threads.agent')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'receiver'], name='pair_total_by_receiver'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'sender', 'receiver', 'is_broadcast', 'dialect', 'channel'), name='pair_total_once', nulls_distinct=False),
                ],
            },
        ),
        migrations.CreateModel(
            name='Read',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.BinaryField(max_length=16)),
                ('border', models.BinaryField(max_length=36)),
                ('reached', models.BinaryField(max_length=36)),
                ('conversation', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='+', to='threads.conversation')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['conversation', 'border'], name='read_of_block'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('conversation', 'key', 'border'), name='read_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Task',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
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
                ('is_inferred', models.BooleanField(default=False)),
                ('steps', models.TextField(blank=True)),
                ('step_count', models.IntegerField(default=0)),
                ('channel', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.PROTECT, to='accounts.channel')),
                ('conversation', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='tasks', to='threads.conversation')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
                ('place', models.BinaryField(default=bytes, max_length=40)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['conversation', 'place', 'id'], name='task_in_order'),
                    models.Index(models.F('workspace'), Left('requester', 100), Left('performer', 100), name='task_of_pair'),
                    models.Index(models.F('workspace'), Left('performer', 100), name='task_of_performer'),
                    models.Index(fields=['workspace', 'state', '-last_at'], name='task_by_state'),
                    models.Index(condition=models.Q(models.Q(('request__isnull', False), ('state__in', ('open', 'acknowledged', 'in-progress', 'waiting', 'delegated')), ('is_answered', False), models.Q(('act', 'delegate'), models.Q(('act__in', ('request', 'query')), ('deadline_at__isnull', True), models.Q(models.Q(('requester', ''), _negated=True), models.Q(('performer', ''), _negated=True), _connector='OR')), _connector='OR')), models.Q(('request__isnull', False), ('deadline_at__isnull', False), models.Q(('finished_at__gt', models.F('deadline_at')), models.Q(('finished_at__isnull', True), ('state__in', ('open', 'acknowledged', 'in-progress', 'waiting', 'delegated'))), _connector='OR')), ('failures__gt', 0), ('steps__contains', '"refused"'), ('steps__contains', '"asked-again"'), ('request__isnull', True), models.Q(('request__isnull', False), ('last_at__gt', models.F('finished_at')), ('state', 'cancelled')), models.Q(('request__isnull', False), ('act__in', ('query', 'propose')), ('within_key__isnull', False)), models.Q(('request__isnull', False), ('act', 'delegate')), _connector='OR'), fields=['conversation', 'first_at', 'key'], name='task_remarkable'),
                    models.Index(condition=models.Q(('request__isnull', False)), fields=['request'], name='task_of_request'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Trace',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('key', models.BinaryField(max_length=32)),
                ('native_id', models.TextField()),
                ('generation', models.BigIntegerField(default=0)),
                ('settled_generation', models.BigIntegerField(default=0)),
                ('settled_at', models.DateTimeField(null=True)),
                ('digest', models.BinaryField(max_length=32, null=True)),
                ('state', models.CharField(choices=[('open', 'Open'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('stalled', 'Stalled')], default='open', max_length=16)),
                ('subject', models.TextField(blank=True)),
                ('agents', ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('dialects', ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('message_count', models.BigIntegerField(default=0)),
                ('conversation_count', models.BigIntegerField(default=0)),
                ('missing_count', models.BigIntegerField(default=0)),
                ('open_count', models.BigIntegerField(default=0)),
                ('severity', models.SmallIntegerField(default=0)),
                ('first_at', models.DateTimeField(null=True)),
                ('last_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('channel', models.ForeignKey(null=True, on_delete=models.PROTECT, to='accounts.channel')),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, to='accounts.workspace')),
                ('channels', ArrayField(base_field=models.UUIDField(), default=list, size=None)),
                ('cut', ArrayField(base_field=models.UUIDField(), default=list, size=None)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', '-last_at', '-id'], name='trace_latest'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'key', 'channel'), name='trace_once', nulls_distinct=False),
                ],
            },
        ),
        migrations.CreateModel(
            name='TreeGroup',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.SmallIntegerField(choices=[(1, 'ghost'), (2, 'heading'), (3, 'part')])),
                ('above', models.UUIDField(null=True)),
                ('order_time', models.DateTimeField()),
                ('order_source', models.BinaryField(default=bytes, max_length=32)),
                ('order_index', models.BigIntegerField(default=0)),
                ('place', models.BinaryField(default=bytes, max_length=40)),
                ('first_at', models.DateTimeField(null=True)),
                ('last_at', models.DateTimeField(null=True)),
                ('severity', models.SmallIntegerField(default=0)),
                ('size', models.IntegerField(default=0)),
                ('is_stale', models.BooleanField(default=False)),
                ('data', models.TextField(blank=True)),
                ('conversation', models.ForeignKey(db_index=False, null=True, on_delete=models.CASCADE, to='threads.conversation')),
                ('trace', models.ForeignKey(db_index=False, null=True, on_delete=models.CASCADE, to='threads.trace')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('above__isnull', False)), fields=['above', 'order_time', 'order_source', 'order_index', 'place', 'id'], name='tree_group_in_order'),
                    models.Index(condition=models.Q(('trace__isnull', False)), fields=['trace', 'kind', 'order_time'], name='tree_group_of_trace'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Wording',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('part', models.IntegerField()),
                ('number', models.IntegerField()),
                ('english', models.TextField(blank=True)),
                ('also', ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('digest', models.BinaryField(max_length=32)),
                ('decoder', models.CharField(max_length=32)),
                ('told_in', models.TextField(blank=True)),
                ('since', models.DateTimeField()),
                ('until', models.DateTimeField()),
                ('cause', models.CharField(choices=[('late', 'A message arrived late'), ('withdrawal', 'A delivery was withdrawn'), ('return', 'A withdrawal was taken back'), ('decoder', 'The decoder changed'), ('dialect', 'Its dialect was settled otherwise'), ('moved', 'It was placed anew')], max_length=16)),
                ('because_of', models.UUIDField(null=True)),
                ('record', models.ForeignKey(on_delete=models.CASCADE, related_name='wordings', to='intake.record')),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('record', 'part', 'number'), name='wording_once'),
                ],
            },
        ),
        migrations.RunSQL(GO_ALONG, migrations.RunSQL.noop),
        FinishTables(),
    ]
