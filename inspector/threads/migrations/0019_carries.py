"""What is carried over the end of a settled conversation, and the columns that go with it."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_api_key_agents'),
        ('threads', '0018_open_severity'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='whole_generation',
            field=models.BigIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='message',
            name='sights',
            field=models.SmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='message',
            name='task',
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name='task',
            name='ending',
            field=models.CharField(blank=True, db_default='', max_length=16),
        ),
        migrations.AddField(
            model_name='task',
            name='ends',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='task',
            name='mode',
            field=models.TextField(blank=True, db_default=''),
        ),
        migrations.CreateModel(
            name='Carry',
            fields=[
                ('conversation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='carry', serialize=False, to='threads.conversation')),
                ('generation', models.BigIntegerField()),
                ('data', models.BinaryField()),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
        ),
    ]
