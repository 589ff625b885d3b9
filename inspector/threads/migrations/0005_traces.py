"""Traces and their outlines, and which trace each message belongs to."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
import inspector.accounts.models
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
        ('intake', '0004_trace_jobs'),
        ('threads', '0004_tasks'),
    ]

    operations = [
        migrations.CreateModel(
            name='Outline',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('count', models.BigIntegerField(default=0)),
                ('latest', models.BigIntegerField(default=-1)),
                ('directory', models.BinaryField(default=bytes)),
            ],
        ),
        migrations.CreateModel(
            name='OutlineBlock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.BinaryField(max_length=16)),
                ('depths', models.BinaryField()),
                ('lines', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='Trace',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('key', models.BinaryField(max_length=32)),
                ('native_id', models.TextField()),
                ('generation', models.BigIntegerField(default=0)),
                ('settled_generation', models.BigIntegerField(default=0)),
                ('settled_at', models.DateTimeField(null=True)),
                ('digest', models.BinaryField(max_length=32, null=True)),
                ('state', models.CharField(choices=[('open', 'Open'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('stalled', 'Stalled')], default='open', max_length=16)),
                ('subject', models.TextField(blank=True)),
                ('agents', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('dialects', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('message_count', models.BigIntegerField(default=0)),
                ('conversation_count', models.BigIntegerField(default=0)),
                ('missing_count', models.BigIntegerField(default=0)),
                ('open_count', models.BigIntegerField(default=0)),
                ('severity', models.SmallIntegerField(default=0)),
                ('first_at', models.DateTimeField(null=True)),
                ('last_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.AddField(
            model_name='message',
            name='trace_basis',
            field=models.CharField(blank=True, db_default='', max_length=8),
        ),
        migrations.AddField(
            model_name='message',
            name='trace_key',
            field=models.BinaryField(max_length=32, null=True),
        ),
        migrations.AddIndex(
            model_name='message',
            index=models.Index(condition=models.Q(('trace_key__isnull', False)), fields=['workspace', 'trace_key', 'channel'], name='message_by_trace'),
        ),
        migrations.AddField(
            model_name='outline',
            name='conversation',
            field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='tree', to='threads.conversation'),
        ),
        migrations.AddField(
            model_name='outline',
            name='workspace',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AddField(
            model_name='outlineblock',
            name='outline',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='blocks', to='threads.outline'),
        ),
        migrations.AddField(
            model_name='trace',
            name='channel',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel'),
        ),
        migrations.AddField(
            model_name='trace',
            name='workspace',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AddField(
            model_name='outline',
            name='trace',
            field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='tree', to='threads.trace'),
        ),
        migrations.AddConstraint(
            model_name='outlineblock',
            constraint=models.UniqueConstraint(fields=('outline', 'digest'), name='outline_block_once'),
        ),
        migrations.AddIndex(
            model_name='trace',
            index=models.Index(fields=['workspace', '-last_at', '-id'], name='trace_latest'),
        ),
        migrations.AddConstraint(
            model_name='trace',
            constraint=models.UniqueConstraint(fields=('workspace', 'key', 'channel'), name='trace_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='outline',
            constraint=models.CheckConstraint(condition=models.Q(('conversation__isnull', True), ('trace__isnull', True), _connector='XOR'), name='outline_of_one'),
        ),
        # Lines are cut out of a block by their place, which must not unpack the whole of it.
        migrations.RunSQL(
            "ALTER TABLE threads_outlineblock ALTER COLUMN lines SET STORAGE EXTERNAL", migrations.RunSQL.noop
        ),
    ]
