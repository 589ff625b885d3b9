"""Keys held in escrow, and their trace, which a trigger keeps from being changed."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
import inspector.accounts.models
from django.conf import settings
from django.db import migrations, models


KEEP = """
CREATE FUNCTION keyring_keep_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the trace of the keyring is only added to';
END
$$;
CREATE TRIGGER keyring_keep_event BEFORE UPDATE OR DELETE ON keyring_keyevent
    FOR EACH ROW EXECUTE FUNCTION keyring_keep_event();
"""
LET_GO = """
DROP TRIGGER keyring_keep_event ON keyring_keyevent;
DROP FUNCTION keyring_keep_event();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='EscrowedKey',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('x25519', 'X25519 private key'), ('psk', 'Pre-shared key')], max_length=8)),
                ('label', models.CharField(max_length=120)),
                ('session', models.TextField(blank=True)),
                ('peer', models.BinaryField(default=bytes, max_length=32)),
                ('fingerprint', models.CharField(max_length=64)),
                ('kek_id', models.CharField(max_length=16)),
                ('data_key', models.BinaryField(max_length=60)),
                ('secret', models.BinaryField(max_length=2048)),
                ('added_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('added_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='escrowed_keys', to='accounts.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('workspace', 'fingerprint', 'session', 'peer'), name='escrowed_key_once')],
            },
        ),
        migrations.CreateModel(
            name='KeyEvent',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('added', 'added'), ('removed', 'removed'), ('opened', 'opened'), ('shown', 'shown')], max_length=8)),
                ('key', models.UUIDField()),
                ('label', models.CharField(max_length=120)),
                ('fingerprint', models.CharField(max_length=64)),
                ('by_api_key', models.CharField(blank=True, max_length=160)),
                ('door', models.CharField(blank=True, choices=[('message', "the message's page"), ('conversation', "the conversation's page"), ('api', 'the API')], max_length=16)),
                ('count', models.BigIntegerField(default=0)),
                ('messages', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, size=None)),
                ('conversation', models.UUIDField(null=True)),
                ('at', models.DateTimeField(default=django.utils.timezone.now)),
                ('by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to=settings.AUTH_USER_MODEL)),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'indexes': [models.Index(fields=['workspace', '-at', '-id'], name='key_event_newest'), models.Index(fields=['workspace', 'key', '-at'], name='key_event_by_key')],
            },
        ),
        migrations.RunSQL(KEEP, LET_GO),
    ]
