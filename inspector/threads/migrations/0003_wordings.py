"""Earlier wordings of messages, and since when each is told as it is."""

import django.contrib.postgres.fields
import django.db.models.deletion
import inspector.accounts.models
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
        ('intake', '0003_dead_letters'),
        ('threads', '0002_links_and_contexts'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='stood_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='message',
            name='told_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name='Wording',
            fields=[
                ('id', models.UUIDField(default=inspector.accounts.models.make_id, editable=False, primary_key=True, serialize=False)),
                ('part', models.IntegerField()),
                ('number', models.IntegerField()),
                ('english', models.TextField(blank=True)),
                ('also', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None)),
                ('digest', models.BinaryField(max_length=32)),
                ('decoder', models.CharField(max_length=32)),
                ('told_in', models.TextField(blank=True)),
                ('since', models.DateTimeField()),
                ('until', models.DateTimeField()),
                ('cause', models.CharField(choices=[('late', 'A message arrived late'), ('withdrawal', 'A delivery was withdrawn'), ('return', 'A withdrawal was taken back'), ('decoder', 'The decoder changed'), ('dialect', 'Its dialect was settled otherwise'), ('moved', 'It was placed anew')], max_length=16)),
                ('because_of', models.UUIDField(null=True)),
                ('record', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='wordings', to='intake.record')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='accounts.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('record', 'part', 'number'), name='wording_once')],
            },
        ),
    ]
