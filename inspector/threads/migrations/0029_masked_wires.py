"""The masked texts of records, which are searched for whoever may not see secrets. Reading writes them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_api_key_agents'),
        ('intake', '0009_claimed_at'),
        ('threads', '0028_tasks_again'),
    ]

    operations = [
        migrations.CreateModel(
            name='MaskedWire',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('dialect', models.CharField(max_length=32)),
                ('text', models.BinaryField()),
                ('record', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='intake.record')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('record', 'dialect'), name='masked_once')],
            },
        ),
    ]
