"""Rows that are written in bulk: no look-up of workspace and channel for each, no index that another one contains."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0005_archived_workspaces'),
        ('intake', '0012_delivery_warnings'),
    ]

    operations = [
        migrations.AlterField(
            model_name='chunk',
            name='delivery',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='intake.delivery'),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='workspace',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='accounts.workspace'),
        ),
        migrations.AlterField(
            model_name='record',
            name='channel',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, to='accounts.channel'),
        ),
        migrations.AlterField(
            model_name='record',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
        migrations.AlterField(
            model_name='scaffold',
            name='delivery',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='scaffold', to='intake.delivery'),
        ),
        migrations.AlterField(
            model_name='sighting',
            name='delivery',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sightings', to='intake.delivery'),
        ),
        migrations.AlterField(
            model_name='sighting',
            name='workspace',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace'),
        ),
    ]
