"""Rows that are written in bulk: no look-up of workspace and channel for each, no index that another one contains."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0005_archived_workspaces'),
        ('intake', '0013_fewer_checks_and_indexes'),
        ('threads', '0034_marked_words'),
    ]

    operations = [
        migrations.AlterField(
            model_name='agenttotal',
            name='channel',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel'),
        ),
        migrations.AlterField(
            model_name='agenttotal',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AlterField(
            model_name='appearance',
            name='channel',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel'),
        ),
        migrations.AlterField(
            model_name='appearance',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AlterField(
            model_name='block',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AlterField(
            model_name='conversation',
            name='workspace',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AlterField(
            model_name='exchange',
            name='channel',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel'),
        ),
        migrations.AlterField(
            model_name='exchange',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AlterField(
            model_name='message',
            name='channel',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel'),
        ),
        migrations.AlterField(
            model_name='message',
            name='conversation',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='threads.conversation'),
        ),
        migrations.AlterField(
            model_name='message',
            name='record',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='intake.record'),
        ),
        migrations.AlterField(
            model_name='message',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AlterField(
            model_name='pairtotal',
            name='channel',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel'),
        ),
        migrations.AlterField(
            model_name='pairtotal',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AlterField(
            model_name='task',
            name='channel',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel'),
        ),
        migrations.AlterField(
            model_name='task',
            name='conversation',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='tasks', to='threads.conversation'),
        ),
        migrations.AlterField(
            model_name='task',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AlterField(
            model_name='treegroup',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
    ]
