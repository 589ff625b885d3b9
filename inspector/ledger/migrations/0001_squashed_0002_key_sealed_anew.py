"""What a new database gets at once; one that is there came to the same by the migrations that this replaces."""

from django.db import migrations, models
from django.utils import timezone

from inspector.schema import FinishTables

KEEP = """
CREATE FUNCTION keep_ledger() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    RAISE EXCEPTION 'The ledger is only added to: % is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege',
              HINT = 'What is entered stays as it is. See docs/proofs.md.';
END
$$;
"""
# ALWAYS holds also where a session plays the replica.
KEEP_TABLE = """
CREATE TRIGGER ledger_kept BEFORE UPDATE{columns} OR DELETE ON ledger_ledger{name} FOR EACH ROW EXECUTE FUNCTION keep_ledger();
CREATE TRIGGER ledger_whole BEFORE TRUNCATE ON ledger_ledger{name} FOR EACH STATEMENT EXECUTE FUNCTION keep_ledger();
ALTER TABLE ledger_ledger{name} ENABLE ALWAYS TRIGGER ledger_kept;
ALTER TABLE ledger_ledger{name} ENABLE ALWAYS TRIGGER ledger_whole;
"""
# The signing key can be sealed with another key-encryption key; nothing else of it changes, and it never goes.
CHANGING = {'key': ' OF id, name, public, made_at'}
TABLES = ('entry', 'hash', 'checkpoint', 'cosignature', 'key')


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('ledger', name)
        for name in (
            '0001_ledger', '0002_key_sealed_anew',
        )
    ]

    dependencies = [
        ('accounts', '0001_squashed_0012_indexes_sealed'),
    ]

    operations = [
        migrations.CreateModel(
            name='LedgerCheckpoint',
            fields=[
                ('pk', models.CompositePrimaryKey('workspace', 'size', blank=True, editable=False, primary_key=True, serialize=False)),
                ('size', models.BigIntegerField()),
                ('root', models.BinaryField(max_length=32)),
                ('note', models.TextField()),
                ('signed_at', models.DateTimeField(default=timezone.now)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name='+', to='accounts.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='LedgerCosignature',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('size', models.BigIntegerField()),
                ('witness', models.CharField(max_length=256)),
                ('verifier', models.TextField()),
                ('line', models.TextField()),
                ('added_at', models.DateTimeField(default=timezone.now)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name='+', to='accounts.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'size', 'verifier'), name='ledger_cosignature_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='LedgerEntry',
            fields=[
                ('pk', models.CompositePrimaryKey('workspace', 'index', blank=True, editable=False, primary_key=True, serialize=False)),
                ('index', models.BigIntegerField()),
                ('kind', models.CharField(max_length=24)),
                ('subject', models.UUIDField()),
                ('leaf_hash', models.BinaryField(max_length=32)),
                ('entered_at', models.DateTimeField(default=timezone.now)),
                ('workspace', models.ForeignKey(db_constraint=False, db_index=False, on_delete=models.PROTECT, related_name='+', to='accounts.workspace')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('subject', 'kind'), name='ledger_entry_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='LedgerHash',
            fields=[
                ('pk', models.CompositePrimaryKey('workspace', 'height', 'index', blank=True, editable=False, primary_key=True, serialize=False)),
                ('height', models.SmallIntegerField()),
                ('index', models.BigIntegerField()),
                ('hash', models.BinaryField(max_length=32)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name='+', to='accounts.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='LedgerKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64, unique=True)),
                ('public', models.BinaryField(max_length=32)),
                ('sealed', models.BinaryField(max_length=64)),
                ('made_at', models.DateTimeField(default=timezone.now)),
            ],
        ),
        migrations.RunSQL(KEEP, 'DROP FUNCTION keep_ledger() CASCADE'),
        *(
            migrations.RunSQL(KEEP_TABLE.format(name=name, columns=CHANGING.get(name, '')), migrations.RunSQL.noop)
            for name in TABLES
        ),
        FinishTables(),
    ]
