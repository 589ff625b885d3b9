"""A job for each trace whose tree is to be drawn anew."""


from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('intake', '0003_dead_letters'),
    ]

    operations = [
        migrations.AlterField(
            model_name='job',
            name='kind',
            field=models.CharField(choices=[('frame', 'Frame a delivery'), ('ingest', "Read a delivery's records"), ('weigh', "Hide or show a delivery's records"), ('settle', 'Settle a conversation'), ('trace', 'Draw the tree of a trace')], max_length=16),
        ),
    ]
