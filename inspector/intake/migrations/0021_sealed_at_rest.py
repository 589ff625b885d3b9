"""Which key the bytes of a row are sealed with, where they are."""

import django.db.models.deletion
import inspector.intake.sealed
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0010_seals_records'),
        ('intake', '0020_key_is_free'),
        ('keyring', '0002_period_keys'),
    ]

    operations = [
        migrations.AddField(
            model_name='chunk',
            name='sealed_with',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='keyring.periodkey'),
        ),
        migrations.AddField(
            model_name='record',
            name='sealed_with',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='keyring.periodkey'),
        ),
        migrations.AddField(
            model_name='scaffold',
            name='sealed_with',
            field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='keyring.periodkey'),
        ),
        migrations.AlterField(
            model_name='chunk',
            name='data',
            field=inspector.intake.sealed.SealedField(),
        ),
        migrations.AlterField(
            model_name='record',
            name='source',
            field=inspector.intake.sealed.SealedField(),
        ),
        migrations.AlterField(
            model_name='record',
            name='wire',
            field=inspector.intake.sealed.SealedField(null=True),
        ),
        migrations.AlterField(
            model_name='scaffold',
            name='data',
            field=inspector.intake.sealed.SealedField(),
        ),
        migrations.AddIndex(
            model_name='record',
            index=models.Index(condition=models.Q(('sealed_with__isnull', False)), fields=['sealed_with', 'id'], name='record_sealed'),
        ),
    ]
