"""What is carried over the end of a conversation, kept of earlier ends as well: what was kept before is made anew."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_api_key_agents'),
        ('threads', '0021_lengthening'),
    ]

    operations = [
        migrations.DeleteModel(name='Carry'),
        migrations.CreateModel(
            name='Carry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('generation', models.BigIntegerField()),
                ('reached', models.BigIntegerField()),
                ('count', models.BigIntegerField()),
                ('border', models.BinaryField(max_length=40)),
                ('data', models.BinaryField()),
                ('stood', models.BinaryField(null=True)),
                ('directory', models.BinaryField(null=True)),
                ('latest', models.BigIntegerField(null=True)),
                ('conversation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='carries', to='threads.conversation')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('conversation', 'generation'), name='carry_once')],
            },
        ),
    ]
