"""What a new database gets at once; one that is there came to the same by the migrations that this replaces."""

from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations, models
from django.db.models.expressions import CombinedExpression
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.intake.sealed import SealedField
from inspector.schema import FinishTables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('intake', name)
        for name in (
            '0001_squashed_0008_alert_jobs', '0009_claimed_at', '0010_idempotency_of_a_key', '0011_waiting',
            '0012_delivery_warnings', '0013_fewer_checks_and_indexes', '0014_job_labels', '0015_no_claimed_at',
            '0016_framed_since', '0017_withdrawals_stay', '0018_verify_job', '0019_erase_job',
            '0020_key_is_free', '0021_sealed_at_rest',
        )
    ]

    dependencies = [
        ('accounts', '0001_squashed_0012_indexes_sealed'),
        ('keyring', '0001_squashed_0003_released_and_expiring'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('door', models.CharField(choices=[('api', 'API'), ('upload', 'Upload'), ('import', 'Import command')], max_length=16)),
                ('state', models.CharField(choices=[('staged', 'Waits to be loaded'), ('receiving', 'Receiving'), ('framing', 'Framing'), ('framed', 'Framed'), ('broken', 'Broken off')], default='receiving', max_length=16)),
                ('received_at', models.DateTimeField(default=timezone.now)),
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
                ('channel', models.ForeignKey(on_delete=models.PROTECT, to='accounts.channel')),
                ('sent_by_key', models.ForeignKey(blank=True, null=True, on_delete=models.SET_NULL, to='accounts.apikey')),
                ('sent_by_user', models.ForeignKey(blank=True, null=True, on_delete=models.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='deliveries', to='accounts.workspace')),
                ('set_aside', models.BigIntegerField(default=0)),
                ('warnings', models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ('is_key_free', models.BooleanField(db_default=False, default=False)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', '-received_at', '-id'], name='delivery_newest'),
                    BrinIndex(autosummarize=True, fields=['framed_at'], name='delivery_framed'),
                    models.Index(condition=models.Q(('state', 'staged')), fields=['received_at'], name='delivery_staged'),
                    models.Index(condition=models.Q(('state__in', ['staged', 'receiving', 'framing'])), fields=['workspace'], name='delivery_waiting'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('received', CombinedExpression(CombinedExpression(models.F('stored'), '+', models.F('duplicate')), '+', models.F('quarantined')))), name='delivery_accounts_for_every_record'),
                    models.UniqueConstraint(condition=models.Q(('is_key_free', False)), fields=('workspace', 'sent_by_key', 'idempotency_key'), name='delivery_idempotency_of_key'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Chunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('offset', models.BigIntegerField()),
                ('data', SealedField()),
                ('delivery', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='chunks', to='intake.delivery')),
                ('sealed_with', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=models.PROTECT, related_name='+', to='keyring.periodkey')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('delivery', 'offset'), name='chunk_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Record',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('identity', models.BinaryField(max_length=32)),
                ('likeness', models.BinaryField(max_length=32, null=True)),
                ('rule', models.SmallIntegerField()),
                ('source', SealedField()),
                ('wire', SealedField(null=True)),
                ('envelope', models.TextField(blank=True)),
                ('dialect', models.CharField(blank=True, max_length=32)),
                ('is_quarantined', models.BooleanField(default=False)),
                ('reason', models.TextField(blank=True)),
                ('order_time', models.DateTimeField()),
                ('order_basis', models.CharField(max_length=8)),
                ('order_source', models.BinaryField(max_length=32)),
                ('order_index', models.BigIntegerField()),
                ('is_from_file', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('channel', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.PROTECT, to='accounts.channel')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
                ('facts', models.TextField(blank=True, default='')),
                ('sealed_with', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=models.PROTECT, related_name='+', to='keyring.periodkey')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('likeness__isnull', False)), fields=['workspace', 'channel', 'likeness'], name='record_likeness'),
                    models.Index(condition=models.Q(('sealed_with__isnull', False)), fields=['sealed_with', 'id'], name='record_sealed'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'channel', 'identity'), name='record_identity_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Sighting',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('index', models.BigIntegerField()),
                ('line', models.BigIntegerField(default=0)),
                ('offset', models.BigIntegerField()),
                ('length', models.BigIntegerField()),
                ('outcome', models.CharField(choices=[('stored', 'Stored'), ('duplicate', 'Duplicate'), ('quarantined', 'Quarantined')], max_length=16)),
                ('is_earlier', models.BooleanField(default=False)),
                ('envelope', models.TextField(blank=True)),
                ('reason', models.TextField(blank=True)),
                ('delivery', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='sightings', to='intake.delivery')),
                ('record', models.ForeignKey(on_delete=models.CASCADE, related_name='sightings', to='intake.record')),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('delivery', 'index'), name='sighting_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='DeadLetter',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('state', models.CharField(choices=[('waiting', 'To be tried again'), ('dead', 'Given up'), ('read', 'Read after all')], default='waiting', max_length=16)),
                ('attempts', models.SmallIntegerField(default=0)),
                ('failure', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('updated_at', models.DateTimeField(default=timezone.now)),
                ('asked_at', models.DateTimeField(blank=True, null=True)),
                ('asked_by', models.ForeignKey(blank=True, null=True, on_delete=models.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('delivery', models.ForeignKey(on_delete=models.CASCADE, related_name='dead_letters', to='intake.delivery')),
                ('record', models.ForeignKey(on_delete=models.CASCADE, related_name='dead_letters', to='intake.record')),
                ('sighting', models.OneToOneField(on_delete=models.CASCADE, related_name='dead_letter', to='intake.sighting')),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('state', 'read'), _negated=True), fields=['workspace', '-created_at', '-id'], name='letter_open'),
                    models.Index(condition=models.Q(('state', 'waiting')), fields=['delivery'], name='letter_waiting'),
                ],
            },
        ),
        migrations.CreateModel(
            name='HiddenRecord',
            fields=[
                ('record', models.OneToOneField(on_delete=models.CASCADE, primary_key=True, related_name='hidden', serialize=False, to='intake.record')),
                ('since', models.DateTimeField(default=timezone.now)),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, to='accounts.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='Job',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('frame', 'Frame a delivery'), ('ingest', "Read a delivery's records"), ('weigh', "Hide or show a delivery's records"), ('settle', 'Process a conversation'), ('trace', 'Draw the tree of a trace'), ('open', 'Open what is sealed in a conversation'), ('export', 'Write an export'), ('examine', 'Examine a conversation'), ('alert', 'Tell a webhook of a finding'), ('verify', 'Verify a ledger'), ('erase', 'Erase messages')], max_length=16)),
                ('subject', models.UUIDField()),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('done', 'Done'), ('dead', 'Dead letter')], default='queued', max_length=16)),
                ('requests', models.BigIntegerField(default=1)),
                ('attempts', models.SmallIntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('lease_token', models.UUIDField(null=True)),
                ('due_at', models.DateTimeField(default=timezone.now)),
                ('checkpoint', models.JSONField(default=dict)),
                ('failure', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=timezone.now)),
                ('updated_at', models.DateTimeField(default=timezone.now)),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('state__in', ['queued', 'running'])), fields=['due_at'], name='job_due'),
                    models.Index(condition=models.Q(('state', 'dead')), fields=['workspace', '-updated_at'], name='job_dead'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('kind', 'subject'), name='job_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Scaffold',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('offset', models.BigIntegerField()),
                ('data', SealedField()),
                ('delivery', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='scaffold', to='intake.delivery')),
                ('sealed_with', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=models.PROTECT, related_name='+', to='keyring.periodkey')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('delivery', 'offset'), name='scaffold_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Withdrawal',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('reason', models.TextField(max_length=2000)),
                ('taken_back_at', models.DateTimeField(blank=True, null=True)),
                ('taken_back_reason', models.TextField(blank=True, max_length=2000)),
                ('by', models.ForeignKey(on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('delivery', models.ForeignKey(on_delete=models.RESTRICT, related_name='withdrawals', to='intake.delivery')),
                ('taken_back_by', models.ForeignKey(blank=True, null=True, on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', '-at'], name='withdrawal_newest'),
                ],
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('taken_back_at__isnull', True)), fields=('delivery',), name='withdrawal_in_force_once'),
                    models.CheckConstraint(condition=models.Q(models.Q(('taken_back_at__isnull', True), ('taken_back_by__isnull', True)), models.Q(('taken_back_at__isnull', False), ('taken_back_by__isnull', False)), _connector='OR'), name='withdrawal_taken_back_by_someone'),
                ],
            },
        ),
        FinishTables(),
    ]
