"""A new database gets these tables at once; one that has them came here by the migrations that this replaces."""

import django.db.models.deletion
import django.db.models.expressions
import django.utils.timezone
import inspector.accounts.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [('intake', '0001_initial'), ('intake', '0002_withdrawals_and_facts'), ('intake', '0003_dead_letters'), ('intake', '0004_trace_jobs'), ('intake', '0005_opening_jobs'), ('intake', '0006_export_jobs'), ('intake', '0007_examine_jobs'), ('intake', '0008_alert_jobs')]

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('door', models.CharField(choices=[('api', 'API'), ('upload', 'Upload'), ('import', 'Import command')], max_length=16)),
                ('state', models.CharField(choices=[('staged', 'Waits to be loaded'), ('receiving', 'Receiving'), ('framing', 'Framing'), ('framed', 'Framed'), ('broken', 'Broken off')], default='receiving', max_length=16)),
                ('received_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('declared_start', models.DateTimeField(blank=True, null=True)),
                ('framed_at', models.DateTimeField(blank=True, null=True)),
                ('remote_address', models.CharField(blank=True, max_length=64)),
                ('file_name', models.TextField(blank=True)),
                ('content_type', models.CharField(blank=True, max_length=120)),
                ('options', models.JSONField(default=dict)),
                ('size_bytes', models.BigIntegerField(default=0)),
                ('sha256', models.BinaryField(max_length=32, null=True)),
                ('framed_bytes', models.BigIntegerField(default=0)),
                ('source_digest', models.BinaryField(max_length=32, null=True)),
                ('received', models.BigIntegerField(default=0)),
                ('stored', models.BigIntegerField(default=0)),
                ('duplicate', models.BigIntegerField(default=0)),
                ('quarantined', models.BigIntegerField(default=0)),
                ('read', models.BigIntegerField(default=0)),
                ('idempotency_key', models.CharField(blank=True, max_length=255, null=True)),
                ('failure', models.TextField(blank=True)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='accounts.channel')),
                ('sent_by_key', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to='accounts.apikey')),
                ('sent_by_user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='accounts.workspace')),
                ('set_aside', models.BigIntegerField(default=0)),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', '-received_at', '-id'], name='delivery_newest'), models.Index(condition=models.Q(('state', 'staged')), fields=['received_at'], name='delivery_staged')],
                'constraints': [models.CheckConstraint(condition=models.Q(('received', django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(models.F('stored'), '+', models.F('duplicate')), '+', models.F('quarantined')))), name='delivery_accounts_for_every_record'), models.UniqueConstraint(fields=('workspace', 'idempotency_key'), name='delivery_idempotency_once')],
            },
        ),
        migrations.CreateModel(
            name='Chunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('offset', models.BigIntegerField()),
                ('data', models.BinaryField()),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='intake.delivery')),
            ],
            options={
                'indexes': [],
                'constraints': [models.UniqueConstraint(fields=('delivery', 'offset'), name='chunk_once')],
            },
        ),
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('frame', 'Frame a delivery'), ('ingest', "Read a delivery's records"), ('weigh', "Hide or show a delivery's records"), ('settle', 'Settle a conversation'), ('trace', 'Draw the tree of a trace'), ('open', 'Open what is sealed in a conversation'), ('export', 'Write an export'), ('examine', 'Examine a conversation'), ('alert', 'Tell a webhook of a finding')], max_length=16)),
                ('subject', models.UUIDField()),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('done', 'Done'), ('dead', 'Dead letter')], default='queued', max_length=16)),
                ('requests', models.BigIntegerField(default=1)),
                ('attempts', models.SmallIntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('lease_token', models.UUIDField(null=True)),
                ('due_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('checkpoint', models.JSONField(default=dict)),
                ('failure', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('state__in', ['queued', 'running'])), fields=['due_at'], name='job_due'), models.Index(condition=models.Q(('state', 'dead')), fields=['workspace', '-updated_at'], name='job_dead')],
                'constraints': [models.UniqueConstraint(fields=('kind', 'subject'), name='job_once')],
            },
        ),
        migrations.CreateModel(
            name='Record',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('identity', models.BinaryField(max_length=32)),
                ('likeness', models.BinaryField(max_length=32, null=True)),
                ('rule', models.SmallIntegerField()),
                ('source', models.BinaryField()),
                ('wire', models.BinaryField(null=True)),
                ('envelope', models.TextField(blank=True)),
                ('dialect', models.CharField(blank=True, max_length=32)),
                ('is_quarantined', models.BooleanField(default=False)),
                ('reason', models.TextField(blank=True)),
                ('order_time', models.DateTimeField()),
                ('order_basis', models.CharField(max_length=8)),
                ('order_source', models.BinaryField(max_length=32)),
                ('order_index', models.BigIntegerField()),
                ('is_from_file', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='accounts.channel')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
                ('facts', models.TextField(blank=True, default='')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('likeness__isnull', False)), fields=['workspace', 'channel', 'likeness'], name='record_likeness')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'channel', 'identity'), name='record_identity_once')],
            },
        ),
        migrations.CreateModel(
            name='Scaffold',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('offset', models.BigIntegerField()),
                ('data', models.BinaryField()),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scaffold', to='intake.delivery')),
            ],
            options={
                'indexes': [],
                'constraints': [models.UniqueConstraint(fields=('delivery', 'offset'), name='scaffold_once')],
            },
        ),
        migrations.CreateModel(
            name='Sighting',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('index', models.BigIntegerField()),
                ('line', models.BigIntegerField(default=0)),
                ('offset', models.BigIntegerField()),
                ('length', models.BigIntegerField()),
                ('outcome', models.CharField(choices=[('stored', 'Stored'), ('duplicate', 'Duplicate'), ('quarantined', 'Quarantined')], max_length=16)),
                ('is_earlier', models.BooleanField(default=False)),
                ('envelope', models.TextField(blank=True)),
                ('reason', models.TextField(blank=True)),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sightings', to='intake.delivery')),
                ('record', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sightings', to='intake.record')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [],
                'constraints': [models.UniqueConstraint(fields=('delivery', 'index'), name='sighting_once')],
            },
        ),
        migrations.CreateModel(
            name='HiddenRecord',
            fields=[
                ('record', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='hidden', serialize=False, to='intake.record')),
                ('since', models.DateTimeField(default=django.utils.timezone.now)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [],
                'constraints': [],
            },
        ),
        migrations.CreateModel(
            name='Withdrawal',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('reason', models.TextField(max_length=2000)),
                ('taken_back_at', models.DateTimeField(blank=True, null=True)),
                ('taken_back_reason', models.TextField(blank=True, max_length=2000)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='withdrawals', to='intake.delivery')),
                ('taken_back_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', '-at'], name='withdrawal_newest')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('taken_back_at__isnull', True)), fields=('delivery',), name='withdrawal_in_force_once'), models.CheckConstraint(condition=models.Q(models.Q(('taken_back_at__isnull', True), ('taken_back_by__isnull', True)), models.Q(('taken_back_at__isnull', False), ('taken_back_by__isnull', False)), _connector='OR'), name='withdrawal_taken_back_by_someone')],
            },
        ),
        migrations.CreateModel(
            name='DeadLetter',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('waiting', 'To be tried again'), ('dead', 'Given up'), ('read', 'Read after all')], default='waiting', max_length=16)),
                ('attempts', models.SmallIntegerField(default=0)),
                ('failure', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('updated_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('asked_at', models.DateTimeField(blank=True, null=True)),
                ('asked_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='dead_letters', to='intake.delivery')),
                ('record', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='dead_letters', to='intake.record')),
                ('sighting', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='dead_letter', to='intake.sighting')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('state', 'read'), _negated=True), fields=['workspace', '-created_at', '-id'], name='letter_open'), models.Index(condition=models.Q(('state', 'waiting')), fields=['delivery'], name='letter_waiting')],
                'constraints': [],
            },
        ),
    ]
