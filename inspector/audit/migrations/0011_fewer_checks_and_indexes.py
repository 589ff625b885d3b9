"""Rows that are written in bulk: no look-up of workspace and channel for each, no index that another one contains."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0005_archived_workspaces'),
        ('audit', '0010_assigned_and_snoozed'),
    ]

    operations = [
        migrations.AlterField(
            model_name='finding',
            name='channel',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel'),
        ),
        migrations.AlterField(
            model_name='finding',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
    ]
