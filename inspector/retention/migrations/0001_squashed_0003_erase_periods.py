"""What a new database gets at once; one that is there came to the same by the migrations that this replaces."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import migrations, models
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.schema import FinishTables

# The one way to clear evidence, for a role that may not change it: what has a tombstone with its digest, and no hold.
# With the rights of the owner, so nothing is found by a path that a caller could set.
ERASE = """
CREATE FUNCTION erase_buried(subjects uuid[]) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    cleared bigint;
BEGIN
    IF EXISTS (SELECT FROM intake_record record JOIN retention_legalhold hold ON hold.workspace_id = record.workspace_id
                WHERE record.id = ANY(subjects) AND hold.lifted_at IS NULL
                  AND coalesce(hold.channel_id, record.channel_id) = record.channel_id) THEN
        RAISE EXCEPTION 'A legal hold stops erasing' USING ERRCODE = 'insufficient_privilege';
    END IF;
    UPDATE intake_record AS record
       SET source = '', wire = NULL, envelope = '', facts = '', reason = '', sealed_with_id = NULL
      FROM retention_tombstone grave
     WHERE record.id = ANY(subjects) AND grave.kind = 'record' AND grave.subject = record.id
       AND grave.workspace_id = record.workspace_id
       AND CASE WHEN record.sealed_with_id IS NULL OR length(record.source) = 0
                THEN grave.sha256 = sha256(record.source) AND grave.size_bytes = length(record.source)
                -- A sealed value begins with the digest of what it holds, and is 60 bytes longer.
                ELSE grave.sha256 = substring(record.source FROM 1 FOR 32)
                     AND grave.size_bytes = length(record.source) - 60 END;
    GET DIAGNOSTICS cleared = ROW_COUNT;
    UPDATE audit_commentturn AS turn SET words = '' FROM retention_tombstone grave, audit_comment said
     WHERE said.id = turn.comment_id AND said.record_id = ANY(subjects)
       AND grave.kind = 'comment-turn' AND grave.subject = turn.id AND grave.workspace_id = said.workspace_id;
    RETURN cleared;
END
$$;
REVOKE ALL ON FUNCTION erase_buried(uuid[]) FROM PUBLIC;
DO $do$ BEGIN
    EXECUTE format('ALTER FUNCTION erase_buried(uuid[]) SET search_path = %I, pg_temp', current_schema());
END $do$;
"""


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('retention', name)
        for name in (
            '0001_retention', '0002_erase_buried', '0003_erase_periods',
        )
    ]

    dependencies = [
        ('accounts', '0001_squashed_0012_indexes_sealed'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Erasure',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('record', 'A message'), ('delivery', 'A delivery'), ('person', 'A person'), ('age', 'By age'), ('period', 'A period')], max_length=8)),
                ('target', models.UUIDField(null=True)),
                ('until', models.DateTimeField(null=True)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('reason', models.TextField(max_length=2000)),
                ('finished_at', models.DateTimeField(null=True)),
                ('by', models.ForeignKey(null=True, on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('channel', models.ForeignKey(db_index=False, null=True, on_delete=models.PROTECT, related_name='+', to='accounts.channel')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name='+', to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', '-id'], name='erasure_newest'),
                    models.Index(condition=models.Q(('kind', 'age')), fields=['channel', '-until'], name='erasure_by_age'),
                ],
            },
        ),
        migrations.CreateModel(
            name='LegalHold',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('reason', models.TextField(max_length=2000)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('lifted_at', models.DateTimeField(null=True)),
                ('by', models.ForeignKey(on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('channel', models.ForeignKey(null=True, on_delete=models.PROTECT, related_name='+', to='accounts.channel')),
                ('lifted_by', models.ForeignKey(null=True, on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=models.PROTECT, related_name='+', to='accounts.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='RetentionRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('days', models.PositiveIntegerField(null=True)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('by', models.ForeignKey(on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('channel', models.ForeignKey(db_index=False, null=True, on_delete=models.PROTECT, related_name='+', to='accounts.channel')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name='+', to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'channel', '-id'], name='retention_rule_latest'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Tombstone',
            fields=[
                ('pk', models.CompositePrimaryKey('kind', 'subject', blank=True, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=24)),
                ('subject', models.UUIDField()),
                ('sha256', models.BinaryField(max_length=32)),
                ('size_bytes', models.BigIntegerField()),
                ('about', ArrayField(base_field=models.UUIDField(), default=list, size=None)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('erasure', models.ForeignKey(on_delete=models.PROTECT, related_name='tombstones', to='retention.erasure')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name='+', to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    GinIndex(fields=['about'], name='tombstone_about'),
                ],
            },
        ),
        migrations.RunSQL(ERASE, 'DROP FUNCTION erase_buried(uuid[])'),
        FinishTables(),
    ]
