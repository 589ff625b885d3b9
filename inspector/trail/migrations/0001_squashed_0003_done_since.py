"""What a new database gets at once; one that is there came to the same by the migrations that this replaces."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import BrinIndex, GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import migrations, models
from django.db.models.functions import Now

from inspector.schema import FinishTables

# The number and the time are the database's own: whoever adds a deed can choose neither. The lock makes the numbers of a
# workspace follow each other without a gap. ALWAYS holds also where a session plays the replica.
KEEP = """
CREATE FUNCTION number_deed() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1414676812, hashtext(NEW.workspace_id::text));
    SELECT coalesce(max(sequence), 0) + 1 INTO NEW.sequence FROM trail_deed WHERE workspace_id = NEW.workspace_id;
    NEW.at := clock_timestamp();
    RETURN NEW;
END
$$;
CREATE FUNCTION keep_deeds() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    RAISE EXCEPTION 'The trail is only added to: % is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege',
              HINT = 'What is recorded stays as it is. See docs/trail.md.';
END
$$;
CREATE TRIGGER deed_numbered BEFORE INSERT ON trail_deed FOR EACH ROW EXECUTE FUNCTION number_deed();
CREATE TRIGGER deed_kept BEFORE UPDATE OR DELETE ON trail_deed FOR EACH ROW EXECUTE FUNCTION keep_deeds();
CREATE TRIGGER deeds_kept BEFORE TRUNCATE ON trail_deed FOR EACH STATEMENT EXECUTE FUNCTION keep_deeds();
ALTER TABLE trail_deed ENABLE ALWAYS TRIGGER deed_numbered;
ALTER TABLE trail_deed ENABLE ALWAYS TRIGGER deed_kept;
ALTER TABLE trail_deed ENABLE ALWAYS TRIGGER deeds_kept;
"""
# Only whoever owns the table can take this step back, and the table goes with it.
LET_GO = "DROP FUNCTION number_deed() CASCADE; DROP FUNCTION keep_deeds() CASCADE"


class Migration(migrations.Migration):
    initial = True

    replaces = [
        ('trail', name)
        for name in (
            '0001_append_only', '0002_searched_names', '0003_done_since',
        )
    ]

    dependencies = [
        ('accounts', '0001_squashed_0012_indexes_sealed'),
    ]

    operations = [
        migrations.CreateModel(
            name='Deed',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('sequence', models.BigIntegerField(db_default=0)),
                ('at', models.DateTimeField(db_default=Now())),
                ('actor_kind', models.CharField(choices=[('member', 'a member'), ('api-key', 'an API key'), ('operator', 'the operator'), ('product', 'the product')], max_length=16)),
                ('actor_id', models.CharField(blank=True, max_length=64)),
                ('actor_name', models.TextField()),
                ('address', models.CharField(blank=True, max_length=64)),
                ('code', models.CharField(max_length=48)),
                ('object_kind', models.CharField(blank=True, max_length=32)),
                ('object_id', models.CharField(blank=True, max_length=64)),
                ('object_label', models.TextField(blank=True)),
                ('about', ArrayField(base_field=models.UUIDField(), default=list, size=None)),
                ('told', models.TextField()),
                ('details', models.JSONField(default=dict)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name='+', to='accounts.workspace')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['workspace', 'actor_kind', 'actor_id', '-sequence'], name='deed_by_actor'),
                    models.Index(fields=['workspace', 'code', '-sequence'], name='deed_by_code'),
                    BrinIndex(autosummarize=True, fields=['at'], name='deed_since'),
                    models.Index(fields=['workspace', 'at'], name='deed_by_time'),
                    GinIndex(fields=['about'], name='deed_about'),
                    GinIndex(SearchVector('actor_name', 'object_label', 'told', 'details', config='simple'), name='deed_words'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('workspace', 'sequence'), name='deed_number_once'),
                ],
            },
        ),
        migrations.RunSQL(KEEP, LET_GO),
        FinishTables(),
    ]
