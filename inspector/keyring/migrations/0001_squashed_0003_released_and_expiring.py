"""What a new database gets at once; one that is there came to the same by the migrations that this replaces."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models
from django.utils import timezone

from inspector.accounts.models import make_id
from inspector.schema import FinishTables

# The trace of the keys is only added to. The key of a period never comes back, and is not destroyed under a legal hold.
KEEP = """
CREATE FUNCTION keyring_keep_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the trace of the keyring is only added to';
END
$$;
CREATE TRIGGER keyring_keep_event BEFORE UPDATE OR DELETE ON keyring_keyevent
    FOR EACH ROW EXECUTE FUNCTION keyring_keep_event();
CREATE FUNCTION keyring_guard_period() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.destroyed_at IS NOT NULL OR (NEW.id, NEW.workspace_id, NEW.period) <> (OLD.id, OLD.workspace_id, OLD.period) THEN
        RAISE EXCEPTION 'the key of a period stays what it is, and destroyed once it is';
    END IF;
    IF NEW.destroyed_at IS NOT NULL AND EXISTS (
        SELECT FROM retention_legalhold WHERE workspace_id = OLD.workspace_id AND lifted_at IS NULL) THEN
        RAISE EXCEPTION 'A legal hold stops erasing' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER keyring_guard_period BEFORE UPDATE ON keyring_periodkey
    FOR EACH ROW EXECUTE FUNCTION keyring_guard_period();
"""
LET_GO = "DROP FUNCTION keyring_keep_event() CASCADE; DROP FUNCTION keyring_guard_period() CASCADE"


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('keyring', name)
        for name in (
            '0001_keys_and_their_trace', '0002_period_keys', '0003_released_and_expiring',
        )
    ]

    dependencies = [
        ('accounts', '0001_squashed_0012_indexes_sealed'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='EscrowedKey',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('x25519', 'X25519 private key'), ('psk', 'Pre-shared key')], max_length=8)),
                ('label', models.CharField(max_length=120)),
                ('session', models.TextField(blank=True)),
                ('peer', models.BinaryField(default=bytes, max_length=32)),
                ('fingerprint', models.CharField(max_length=64)),
                ('kek_id', models.CharField(max_length=16)),
                ('data_key', models.BinaryField(max_length=60)),
                ('secret', models.BinaryField(max_length=2048)),
                ('added_at', models.DateTimeField(default=timezone.now)),
                ('added_by', models.ForeignKey(on_delete=models.PROTECT, to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, related_name='escrowed_keys', to='accounts.workspace')),
                ('expires_at', models.DateTimeField(null=True)),
                ('released_at', models.DateTimeField(null=True)),
                ('released_by', models.ForeignKey(null=True, on_delete=models.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'fingerprint', 'session', 'peer'), name='escrowed_key_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='KeyEvent',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('added', 'added'), ('released', 'released'), ('removed', 'removed'), ('expired', 'expired'), ('opened', 'opened'), ('shown', 'shown')], max_length=8)),
                ('key', models.UUIDField()),
                ('label', models.CharField(max_length=120)),
                ('fingerprint', models.CharField(max_length=64)),
                ('by_api_key', models.CharField(blank=True, max_length=160)),
                ('door', models.CharField(blank=True, choices=[('message', "the message's page"), ('conversation', "the conversation's page"), ('api', 'the API')], max_length=16)),
                ('count', models.BigIntegerField(default=0)),
                ('messages', ArrayField(base_field=models.UUIDField(), default=list, size=None)),
                ('conversation', models.UUIDField(null=True)),
                ('at', models.DateTimeField(default=timezone.now)),
                ('by', models.ForeignKey(null=True, on_delete=models.PROTECT, to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=models.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', '-at', '-id'], name='key_event_newest'),
                    models.Index(fields=['workspace', 'key', '-at'], name='key_event_by_key'),
                ],
            },
        ),
        migrations.CreateModel(
            name='PeriodKey',
            fields=[
                ('id', models.UUIDField(default=make_id, editable=False, primary_key=True, serialize=False)),
                ('period', models.CharField(max_length=7)),
                ('kek_id', models.CharField(blank=True, max_length=16)),
                ('data_key', models.BinaryField(max_length=60)),
                ('made_at', models.DateTimeField(default=timezone.now)),
                ('destroyed_at', models.DateTimeField(null=True)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name='+', to='accounts.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'period'), name='period_key_once'),
                    models.CheckConstraint(condition=models.Q(('destroyed_at', None), models.Q(('data_key', b''), ('kek_id', '')), _connector='XOR'), name='period_key_or_destroyed'),
                ],
            },
        ),
        migrations.RunSQL(KEEP, LET_GO),
        FinishTables(),
    ]
