"""What a job is called: the state of the models changes, the database does not."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('intake', '0013_fewer_checks_and_indexes'),
    ]

    operations = [
        migrations.AlterField(
            model_name='job',
            name='kind',
            field=models.CharField(choices=[('frame', 'Frame a delivery'), ('ingest', "Read a delivery's records"), ('weigh', "Hide or show a delivery's records"), ('settle', 'Process a conversation'), ('trace', 'Draw the tree of a trace'), ('open', 'Open what is sealed in a conversation'), ('export', 'Write an export'), ('examine', 'Examine a conversation'), ('alert', 'Tell a webhook of a finding')], max_length=16),
        ),
    ]
