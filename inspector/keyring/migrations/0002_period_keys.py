"""Keys of periods, which a trigger keeps from coming back, and from being destroyed under a legal hold."""

import django.db.models.deletion
import django.utils.timezone
import inspector.accounts.models
from django.db import migrations, models


GUARD = """
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
LET_GO = """
DROP TRIGGER keyring_guard_period ON keyring_periodkey;
DROP FUNCTION keyring_guard_period();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0010_seals_records'),
        ('keyring', '0001_keys_and_their_trace'),
        ('retention', '0001_retention'),
    ]

    operations = [
        migrations.CreateModel(
            name='PeriodKey',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('period', models.CharField(max_length=7)),
                ('kek_id', models.CharField(blank=True, max_length=16)),
                ('data_key', models.BinaryField(max_length=60)),
                ('made_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('destroyed_at', models.DateTimeField(null=True)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('workspace', 'period'), name='period_key_once'), models.CheckConstraint(condition=models.Q(('destroyed_at', None), models.Q(('data_key', b''), ('kek_id', '')), _connector='XOR'), name='period_key_or_destroyed')],
            },
        ),
        migrations.RunSQL(GUARD, LET_GO),
    ]
