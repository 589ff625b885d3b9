"""Opening what is sealed becomes a kind of job."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('intake', '0004_trace_jobs'),
    ]

    operations = [
        migrations.AlterField(
            model_name='job',
            name='kind',
            field=models.CharField(choices=[('frame', 'Frame a delivery'), ('ingest', "Read a delivery's records"), ('weigh', "Hide or show a delivery's records"), ('settle', 'Settle a conversation'), ('trace', 'Draw the tree of a trace'), ('open', 'Open what is sealed in a conversation')], max_length=16),
        ),
    ]
