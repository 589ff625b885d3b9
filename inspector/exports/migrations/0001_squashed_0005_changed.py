"""What a new database gets at once; one that is there came to the same by the migrations that this replaces."""

from django.conf import settings
from django.db import migrations, models
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.schema import FinishTables


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('exports', name)
        for name in (
            '0001_initial', '0002_reports', '0003_samples', '0004_findings', '0005_changed',
        )
    ]

    dependencies = [
        ('accounts', '0001_squashed_0012_indexes_sealed'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Export',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('asked_by', models.TextField()),
                ('asked_at', models.DateTimeField(default=timezone.now)),
                ('subject', models.CharField(choices=[('query', 'Messages that a search finds'), ('conversation', 'One conversation'), ('conversations', 'Conversations of a list'), ('sample', 'An audit sample'), ('findings', 'Findings of a list')], max_length=16)),
                ('query', models.TextField(blank=True)),
                ('zone', models.CharField(default='UTC', max_length=64)),
                ('conversation_id', models.UUIDField(blank=True, null=True)),
                ('filters', models.JSONField(default=dict)),
                ('title', models.TextField(blank=True)),
                ('form', models.CharField(choices=[('jsonl', 'JSON Lines'), ('csv', 'CSV'), ('html', 'Report')], max_length=8)),
                ('is_masked', models.BooleanField(default=True)),
                ('has_mark', models.BooleanField(default=False)),
                ('is_packed', models.BooleanField(default=False)),
                ('state', models.CharField(choices=[('queued', 'Waits for a worker'), ('writing', 'Being written'), ('sealing', 'Being hashed'), ('done', 'Ready'), ('refused', 'Could not be made'), ('cancelled', 'Cancelled'), ('removed', 'Removed'), ('expired', 'Expired')], default='queued', max_length=16)),
                ('failure', models.TextField(blank=True)),
                ('fixed_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('listed', models.BigIntegerField(blank=True, null=True)),
                ('messages', models.BigIntegerField(default=0)),
                ('rows', models.BigIntegerField(default=0)),
                ('withdrawn', models.BigIntegerField(default=0)),
                ('gone', models.BigIntegerField(default=0)),
                ('masked', models.BigIntegerField(default=0)),
                ('block', models.IntegerField(default=0)),
                ('entry', models.IntegerField(default=0)),
                ('pieces', models.IntegerField(default=0)),
                ('size_bytes', models.BigIntegerField(default=0)),
                ('unpacked_bytes', models.BigIntegerField(default=0)),
                ('sha256', models.BinaryField(max_length=32, null=True)),
                ('decoder', models.CharField(blank=True, max_length=32)),
                ('downloads', models.IntegerField(default=0)),
                ('downloaded_at', models.DateTimeField(blank=True, null=True)),
                ('asked_by_key', models.ForeignKey(blank=True, null=True, on_delete=models.SET_NULL, related_name='+', to='accounts.apikey')),
                ('asked_by_user', models.ForeignKey(blank=True, null=True, on_delete=models.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='exports', to='accounts.workspace')),
                ('sample_id', models.UUIDField(blank=True, null=True)),
                ('changed', models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', '-asked_at', '-id'], name='export_newest'),
                    models.Index(condition=models.Q(('state', 'done')), fields=['expires_at'], name='export_kept'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Block',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.IntegerField()),
                ('entries', models.BinaryField()),
                ('export', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='blocks', to='exports.export')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('export', 'number'), name='export_block_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Piece',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.IntegerField()),
                ('data', models.BinaryField()),
                ('export', models.ForeignKey(db_index=False, on_delete=models.CASCADE, related_name='file', to='exports.export')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('export', 'number'), name='export_piece_once'),
                ],
            },
        ),
        # What is packed already is not packed again by the database.
        migrations.RunSQL(
            'ALTER TABLE exports_piece ALTER COLUMN data SET STORAGE EXTERNAL;'
            'ALTER TABLE exports_block ALTER COLUMN entries SET STORAGE EXTERNAL',
            migrations.RunSQL.noop,
        ),
        FinishTables(),
    ]
