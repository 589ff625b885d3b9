"""Nobody asks any more when a job was last taken up."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('intake', '0014_job_labels'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='job',
            name='claimed_at',
        ),
    ]
