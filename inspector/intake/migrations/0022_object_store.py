from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('intake', '0001_squashed_0021_sealed_at_rest')]

    operations = [
        migrations.AddField('chunk', 'object_key', models.TextField(blank=True, default='', db_default='')),
        migrations.AddField('chunk', 'object_bytes', models.BigIntegerField(null=True)),
        migrations.AddField('chunk', 'object_sha256', models.BinaryField(max_length=32, null=True)),
    ]
